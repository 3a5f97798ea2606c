// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.common;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.FloatStyle;
import io.nereid.observe.metrics.MetricsWriter;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * The options of the V1 protocol and TensorFlow Serving's API. Immutable.
 *
 * @param clock measures latencies
 * @param cors whether to allow cross-origin requests of web pages to the REST API
 * @param metricsPath the path of TensorFlow Serving's metrics; null to serve and measure none
 * @param timeoutNanos the time limit of a REST request; 0 for none
 * @param floatStyle how REST responses print FP32, FP16 and BF16
 * @param trailingText whether text after the body of a REST request is ignored, as TensorFlow Serving does, and not
 *     rejected
 * @param methodCheck whether to reject signatures whose method is not predict, classify or regress
 * @param tensorContent whether gRPC responses hold numbers as raw bytes ({@code tensor_content}), not as typed lists
 * @param events the attributes of responses to CloudEvents
 * @param extraMetrics adds further families to the metrics
 * @param queueDepths queued requests, by model, for the metrics
 */
public record V1Options(
        Clock clock,
        boolean cors,
        @Nullable String metricsPath,
        long timeoutNanos,
        FloatStyle floatStyle,
        boolean trailingText,
        boolean methodCheck,
        boolean tensorContent,
        Events events,
        Consumer<MetricsWriter> extraMetrics,
        Supplier<Map<String, Long>> queueDepths) {
    /**
     * The attributes of responses to CloudEvents. Immutable.
     *
     * @param type the type
     * @param source the source; null for {@code io.kserve.inference.} followed by the model's name
     * @param merge whether to copy the request's attributes, but for id, time, type and source
     */
    public record Events(String type, @Nullable String source, boolean merge) {
        /** KServe's defaults. */
        public static final Events DEFAULT = new Events("io.kserve.inference.response", null, false);

        /**
         * The attributes that the environment variables {@code CE_TYPE}, {@code CE_SOURCE} and {@code CE_MERGE} set.
         */
        public static Events of(Map<String, String> environment) {
            return new Events(
                    environment.getOrDefault("CE_TYPE", DEFAULT.type),
                    environment.get("CE_SOURCE"),
                    environment.getOrDefault("CE_MERGE", "").equalsIgnoreCase("true"));
        }
    }

    /** The default path of TensorFlow Serving's metrics. */
    public static final String METRICS_PATH = "/monitoring/prometheus/metrics";

    /** A builder with TensorFlow Serving's defaults, but without a time limit. */
    public static Builder builder(Clock clock) {
        return new Builder(clock);
    }

    /** The defaults. */
    public static V1Options defaults(Clock clock) {
        return builder(clock).build();
    }

    /** A builder of options. Confined to one thread. */
    public static final class Builder {
        private final Clock clock;
        private boolean cors;
        private @Nullable String metricsPath;
        private long timeoutNanos;
        private FloatStyle floatStyle = FloatStyle.SHORTEST;
        private boolean trailingText;
        private boolean methodCheck;
        private boolean tensorContent;
        private Events events = Events.DEFAULT;
        private Consumer<MetricsWriter> extraMetrics = page -> {};
        private Supplier<Map<String, Long>> queueDepths = Map::of;

        private Builder(Clock clock) {
            this.clock = Objects.requireNonNull(clock, "clock");
        }

        /** See {@link V1Options#cors}. */
        public Builder cors(boolean on) {
            cors = on;
            return this;
        }

        /**
         * See {@link V1Options#metricsPath}; the empty text stands for {@link #METRICS_PATH}.
         *
         * @throws ServingException INVALID_ARGUMENT when the path does not begin with a slash
         */
        public Builder metricsPath(@Nullable String path) {
            if (path != null && !path.isEmpty() && (path.charAt(0) != '/' || path.indexOf('{') >= 0)) {
                throw ServingException.of(
                        ErrorCode.INVALID_ARGUMENT,
                        "the path of the metrics is '" + path + "' (expected: '/' and literal segments)",
                        "leave it out for " + METRICS_PATH);
            }
            metricsPath = path != null && path.isEmpty() ? METRICS_PATH : path;
            return this;
        }

        /** See {@link V1Options#timeoutNanos}. */
        public Builder timeoutNanos(long nanos) {
            timeoutNanos = Math.max(0, nanos);
            return this;
        }

        /** See {@link V1Options#floatStyle}. */
        public Builder floatStyle(FloatStyle style) {
            floatStyle = style;
            return this;
        }

        /** See {@link V1Options#trailingText}. */
        public Builder trailingText(boolean ignored) {
            trailingText = ignored;
            return this;
        }

        /** See {@link V1Options#methodCheck}. */
        public Builder methodCheck(boolean on) {
            methodCheck = on;
            return this;
        }

        /** See {@link V1Options#tensorContent}. */
        public Builder tensorContent(boolean on) {
            tensorContent = on;
            return this;
        }

        /** See {@link V1Options#events}. */
        public Builder events(Events attributes) {
            events = attributes;
            return this;
        }

        /** See {@link V1Options#extraMetrics}. */
        public Builder extraMetrics(Consumer<MetricsWriter> families) {
            extraMetrics = families;
            return this;
        }

        /** See {@link V1Options#queueDepths}. */
        public Builder queueDepths(Supplier<Map<String, Long>> depths) {
            queueDepths = depths;
            return this;
        }

        /** Builds the options. */
        public V1Options build() {
            return new V1Options(
                    clock,
                    cors,
                    metricsPath,
                    timeoutNanos,
                    floatStyle,
                    trailingText,
                    methodCheck,
                    tensorContent,
                    events,
                    extraMetrics,
                    queueDepths);
        }
    }
}
