// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.common;

import io.nereid.base.ErrorCode;
import io.nereid.observe.metrics.LabelSet;
import io.nereid.observe.metrics.MetricType;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.observe.metrics.NumberStyle;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * TensorFlow Serving's request metrics under its own names, for REST and gRPC. Latencies are in microseconds, as there.
 * Thread-safe: counters that only increase, in maps that only grow.
 */
public final class TfServingMetrics {
    /** Limits the number of names, as clients can invent them; further ones are counted together. */
    private static final int MOST_MODELS = 20_000;

    private static final double[] LATENCY_BOUNDS = exponential(10, 1.8, 33);
    private static final double[] EXAMPLE_BOUNDS = exponential(1, 2, 15);

    private final boolean measuring;
    private final Supplier<Map<String, Long>> queueDepths;
    private final Consumer<MetricsWriter> extra;
    private final Map<String, OfModel> models = new ConcurrentHashMap<>();
    private final OfModel others = new OfModel();

    /** The API of a request, by TensorFlow Serving's name. */
    public enum Api {
        /** From tensors to tensors. */
        PREDICT("Predict"),
        /** From examples to classes. */
        CLASSIFY("Classify"),
        /** From examples to numbers. */
        REGRESS("Regress"),
        /** Several classifications and regressions in one request. */
        MULTI_INFERENCE("MultiInference");

        private final String label;

        Api(String label) {
            this.label = label;
        }
    }

    /** The API by which a request arrived. */
    public enum Entrypoint {
        REST,
        GRPC
    }

    public TfServingMetrics(V1Options options) {
        this.measuring = options.metricsPath() != null;
        this.queueDepths = options.queueDepths();
        this.extra = options.extraMetrics();
    }

    /** Whether metrics are enabled. */
    public boolean measuring() {
        return measuring;
    }

    /** Counts the start of a valid request; exactly one {@link #finished} follows. */
    public void started(String model) {
        if (measuring) {
            of(model).inFlight.increment();
        }
    }

    /**
     * Counts the end of a request.
     *
     * @param latencyNanos the time since its arrival; recorded for successful requests only
     */
    public void finished(String model, Api api, Entrypoint entrypoint, ErrorCode status, long latencyNanos) {
        if (!measuring) {
            return;
        }
        OfModel m = of(model);
        m.inFlight.decrement();
        m.count(status);
        if (status == ErrorCode.OK) {
            m.latency(api, entrypoint).record(latencyNanos / 1e3);
        }
    }

    /** Counts a request that was rejected before it was {@link #started}. */
    public void rejected(String model, ErrorCode status) {
        if (measuring) {
            of(model).count(status);
        }
    }

    /**
     * Records the run of a model for a request.
     *
     * @param runtime the model's platform, such as {@code onnxruntime_onnx}
     */
    public void ran(String model, Api api, String runtime, long nanos) {
        if (measuring) {
            of(model).runtime(api, runtime).record(nanos / 1e3);
        }
    }

    /** Counts the examples of a request. */
    public void examples(String model, long count) {
        if (measuring) {
            OfModel m = of(model);
            m.exampleTotal.add(count);
            m.examples.record(count);
        }
    }

    private OfModel of(String model) {
        OfModel found = models.get(model);
        if (found != null) {
            return found;
        }
        return models.size() < MOST_MODELS ? models.computeIfAbsent(model, m -> new OfModel()) : others;
    }

    /** The metrics as a page. */
    public String page(MetricsFormat format) {
        MetricsWriter page = new MetricsWriter(format, NumberStyle.SIX_DIGITS);
        Map<String, OfModel> all = new TreeMap<>(models);
        if (others.counted()) {
            all.put("", others);
        }
        family(page, "request_count", MetricType.COUNTER);
        all.forEach((name, m) -> {
            for (ErrorCode code : ErrorCode.values()) {
                LongAdder n = m.counts.get(code.ordinal());
                if (n != null) {
                    page.sample(LabelSet.of("model_name", name).with("status", code.name()), n.sum());
                }
            }
        });
        family(page, "request_latency", MetricType.HISTOGRAM);
        all.forEach((name, m) -> {
            for (Api api : Api.values()) {
                for (Entrypoint entrypoint : Entrypoint.values()) {
                    Histogram h = m.latencies.get(index(api, entrypoint));
                    if (h != null) {
                        h.write(
                                page,
                                LabelSet.of("model_name", name)
                                        .with("API", api.label)
                                        .with("entrypoint", entrypoint.name()));
                    }
                }
            }
        });
        family(page, "runtime_latency", MetricType.HISTOGRAM);
        all.forEach((name, m) -> {
            for (Api api : Api.values()) {
                LabelSet labels = LabelSet.of("model_name", name).with("API", api.label);
                new TreeMap<>(m.runtimes.get(api.ordinal()))
                        .forEach((runtime, h) -> h.write(page, labels.with("runtime", runtime)));
            }
        });
        family(page, "request_example_counts", MetricType.HISTOGRAM);
        all.forEach((name, m) -> {
            if (m.examples.count.sum() > 0) {
                m.examples.write(page, LabelSet.of("model", name));
            }
        });
        family(page, "request_example_count_total", MetricType.COUNTER);
        all.forEach((name, m) -> {
            if (m.examples.count.sum() > 0) {
                page.sample(LabelSet.of("model", name), m.exampleTotal.sum());
            }
        });
        family(page, "requests_in_flight", MetricType.GAUGE);
        all.forEach((name, m) -> page.sample(LabelSet.of("model_name", name), Math.max(0, m.inFlight.sum())));
        family(page, "requests_queued", MetricType.GAUGE);
        new TreeMap<>(queueDepths.get()).forEach((name, n) -> page.sample(LabelSet.of("model_name", name), n));
        extra.accept(page);
        return page.finish();
    }

    /** Begins a family without a description, as TensorFlow Serving does. */
    private static void family(MetricsWriter page, String name, MetricType type) {
        page.family(":tensorflow:serving:" + name, type, "");
    }

    private static int index(Api api, Entrypoint entrypoint) {
        return api.ordinal() * Entrypoint.values().length + entrypoint.ordinal();
    }

    private static double[] exponential(double first, double factor, int count) {
        double[] bounds = new double[count];
        double bound = first;
        for (int i = 0; i < count; i++) {
            bounds[i] = bound;
            bound *= factor;
        }
        return bounds;
    }

    /** The metrics of one model. Thread-safe, as its counters are. */
    private static final class OfModel {
        private final AtomicReferenceArray<@Nullable LongAdder> counts =
                new AtomicReferenceArray<>(ErrorCode.values().length);
        private final AtomicReferenceArray<@Nullable Histogram> latencies =
                new AtomicReferenceArray<>(Api.values().length * Entrypoint.values().length);
        private final List<Map<String, Histogram>> runtimes = Stream.generate(
                        () -> (Map<String, Histogram>) new ConcurrentHashMap<String, Histogram>(2))
                .limit(Api.values().length)
                .toList();
        private final Histogram examples = new Histogram(EXAMPLE_BOUNDS);
        private final LongAdder exampleTotal = new LongAdder();
        private final LongAdder inFlight = new LongAdder();

        boolean counted() {
            for (int i = 0; i < counts.length(); i++) {
                if (counts.get(i) != null) {
                    return true;
                }
            }
            return false;
        }

        void count(ErrorCode code) {
            int i = code.ordinal();
            LongAdder n = counts.get(i);
            if (n == null) {
                counts.compareAndSet(i, null, new LongAdder());
                n = counts.get(i);
            }
            if (n != null) {
                n.increment();
            }
        }

        Histogram latency(Api api, Entrypoint entrypoint) {
            int i = index(api, entrypoint);
            Histogram h = latencies.get(i);
            if (h == null) {
                Histogram made = new Histogram(LATENCY_BOUNDS);
                h = latencies.compareAndExchange(i, null, made);
                return h == null ? made : h;
            }
            return h;
        }

        Histogram runtime(Api api, String runtime) {
            Map<String, Histogram> ofApi = runtimes.get(api.ordinal());
            Histogram h = ofApi.get(runtime);
            return h == null ? ofApi.computeIfAbsent(runtime, r -> new Histogram(LATENCY_BOUNDS)) : h;
        }
    }

    /** A Prometheus histogram. Thread-safe, as its counters are. */
    private static final class Histogram {
        private final double[] bounds;
        private final LongAdder[] buckets;
        private final LongAdder count = new LongAdder();
        /** The sum in thousandths, as an adder of integers is cheaper than one of doubles. */
        private final LongAdder sum = new LongAdder();

        Histogram(double[] bounds) {
            this.bounds = bounds;
            this.buckets = new LongAdder[bounds.length + 1];
            Arrays.setAll(buckets, i -> new LongAdder());
        }

        void record(double value) {
            int at = Arrays.binarySearch(bounds, value);
            buckets[at < 0 ? -at - 1 : at].increment();
            sum.add((long) (value * 1e3));
            count.increment();
        }

        void write(MetricsWriter page, LabelSet labels) {
            long[] counts = new long[buckets.length];
            Arrays.setAll(counts, i -> buckets[i].sum());
            page.histogram(labels, bounds, counts, sum.sum() / 1e3);
        }
    }
}
