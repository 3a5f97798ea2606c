// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.FloatStyle;
import java.util.Map;
import java.util.Objects;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * What an operator may say about the V1 protocol and TensorFlow Serving's API. Immutable.
 *
 * @param clock tells the latencies that are measured
 * @param cors whether browsers' pages of other origins may use the REST API
 * @param metricsPath where the page with TensorFlow Serving's metrics is; null for no such page, and nothing is measured
 * @param timeoutNanos how long a REST request may take; 0 for as long as it takes
 * @param floatStyle how REST answers print FP32, FP16 and BF16
 * @param trailingText whether text behind the body of a REST request is ignored, as TensorFlow Serving does, not refused
 * @param methodCheck whether a signature whose method is none of predict, classify and regress is refused
 * @param tensorContent whether gRPC answers carry numbers as raw bytes instead of as typed lists
 * @param events how answers to CloudEvents are told
 * @param extraMetrics further lines of the page, in Prometheus' text format, each ended by a line feed
 * @param queueDepths requests that wait to be run, by model, for the page
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
        Supplier<String> extraMetrics,
        Supplier<Map<String, Long>> queueDepths) {
    /**
     * What an answer to a CloudEvent says of itself. Immutable.
     *
     * @param type its type
     * @param source its source; null for {@code io.kserve.inference.} and the model's name
     * @param merge whether it repeats the request's attributes, but for id, time, type and source
     */
    public record Events(String type, @Nullable String source, boolean merge) {
        /** What KServe says when it is told nothing. */
        public static final Events DEFAULT = new Events("io.kserve.inference.response", null, false);

        /** As the variables {@code CE_TYPE}, {@code CE_SOURCE} and {@code CE_MERGE} of an environment say. */
        public static Events of(Map<String, String> environment) {
            return new Events(
                    environment.getOrDefault("CE_TYPE", DEFAULT.type),
                    environment.get("CE_SOURCE"),
                    environment.getOrDefault("CE_MERGE", "").equalsIgnoreCase("true"));
        }
    }

    /** Where TensorFlow Serving has its page unless it is told otherwise. */
    public static final String METRICS_PATH = "/monitoring/prometheus/metrics";

    /** Begins with what TensorFlow Serving does when it is told nothing, but for the time limit, which is none. */
    public static Builder builder(Clock clock) {
        return new Builder(clock);
    }

    /** The defaults. */
    public static V1Options defaults(Clock clock) {
        return builder(clock).build();
    }

    /** Gathers options. Confined to one thread. */
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
        private Supplier<String> extraMetrics = () -> "";
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
        public Builder events(Events told) {
            events = told;
            return this;
        }

        /** See {@link V1Options#extraMetrics}. */
        public Builder extraMetrics(Supplier<String> lines) {
            extraMetrics = lines;
            return this;
        }

        /** See {@link V1Options#queueDepths}. */
        public Builder queueDepths(Supplier<Map<String, Long>> depths) {
            queueDepths = depths;
            return this;
        }

        /** The options. */
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
