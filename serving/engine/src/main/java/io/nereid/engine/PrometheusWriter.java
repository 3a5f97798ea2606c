// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.backend.ModelMetric;
import io.nereid.backend.ModelMetric.Sample;
import io.nereid.engine.options.MetricsOptions;
import io.nereid.engine.servable.EngineServable;
import io.nereid.engine.servable.ShadowTraffic;
import io.nereid.engine.statistics.BatchStatistics;
import io.nereid.engine.statistics.Histogram;
import io.nereid.engine.statistics.HostMetrics;
import io.nereid.engine.statistics.LatencySummaries;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.engine.statistics.SlidingQuantiles;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.spi.ServableId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/**
 * Writes the metrics in the Prometheus text format 0.0.4, under the names that Triton's dashboards use, plus
 * histograms under Nereid's own names. Hand-written because the Prometheus client libraries append {@code _total} to
 * the names of counters, which Triton's dashboards do not expect. Confined to one thread.
 */
public final class PrometheusWriter {
    private final StringBuilder page = new StringBuilder(4096);
    private final Collection<EngineServable> servables;
    private final MetricsOptions options;

    public PrometheusWriter(Collection<? extends EngineServable> servables, MetricsOptions options) {
        this.servables = List.copyOf(servables);
        this.options = options;
    }

    /** Writes the metrics of the servables, the cache and the host. */
    public String write(HostMetrics host, Map<String, Long> cache) {
        write(cache);
        host(host);
        return page.toString();
    }

    /**
     * Writes all metrics.
     *
     * @param reserved the bytes that the lifecycle manager has reserved for models
     * @param limit the limit of these bytes; 0 for none
     */
    String write(HostMetrics host, Map<String, Long> cache, ShadowTraffic labelled, long reserved, long limit) {
        write(cache);
        family("nereid_memory_reserved_bytes", "gauge", "Memory reserved for models, for loading ones by estimate");
        sample("nereid_memory_reserved_bytes", "", reserved);
        family("nereid_memory_limit_bytes", "gauge", "Limit of the memory reserved for models; 0 for no limit");
        sample("nereid_memory_limit_bytes", "", limit);
        labelled(
                "nereid_label_requests_total",
                "Requests by label, and copies of them for shadows",
                labelled.requests());
        labelled(
                "nereid_shadow_dropped_total", "Copies for shadows that were dropped or timed out", labelled.dropped());
        host(host);
        return page.toString();
    }

    private void labelled(String name, String help, Map<ShadowTraffic.Key, LongAdder> counts) {
        family(name, "counter", help);
        counts.forEach((key, count) -> sample(
                name,
                "model=\"" + escaped(key.model()) + "\",label=\"" + escaped(key.label()) + "\",version=\""
                        + key.version() + "\",shadow=\"" + key.shadow() + '"',
                count.sum()));
    }

    private void write(Map<String, Long> cache) {
        counter(
                "nv_inference_request_success",
                "Number of successful inference requests, all batch sizes",
                ModelStatistics::success);
        family("nv_inference_request_failure", "counter", "Number of failed inference requests, all batch sizes");
        for (EngineServable servable : servables) {
            for (ModelStatistics.Failure reason : ModelStatistics.Failure.values()) {
                sample(
                        "nv_inference_request_failure",
                        labels(servable) + ",reason=\"" + reason + "\"",
                        servable.statistics().failures[reason.ordinal()].sum());
            }
        }
        counter(
                "nv_inference_count",
                "Number of inferences performed (each row of a batch counts)",
                s -> s.inferences.sum());
        counter("nv_inference_exec_count", "Number of model executions performed", s -> s.batches.executions());
        if (options.counterLatencies()) {
            durations();
        }
        gauge(
                "nv_inference_pending_request_count",
                "Instantaneous number of pending requests awaiting execution",
                EngineServable::queued);
        gauge("nv_model_load_duration_secs", "Model load time in seconds", s -> s.loadNanos() / 1e9);
        firstResponses();
        summaries();
        cache(cache);
        own();
        ofModels();
    }

    private void durations() {
        counter(
                "nv_inference_request_duration_us",
                "Cumulative inference request duration in microseconds",
                s -> micros(s.request.sum()));
        counter(
                "nv_inference_queue_duration_us",
                "Cumulative inference queuing duration in microseconds",
                s -> micros(s.queue.sum()));
        counter(
                "nv_inference_compute_input_duration_us",
                "Cumulative compute input duration in microseconds",
                s -> micros(s.computeInput.sum()));
        counter(
                "nv_inference_compute_infer_duration_us",
                "Cumulative compute inference duration in microseconds",
                s -> micros(s.compute.sum()));
        counter(
                "nv_inference_compute_output_duration_us",
                "Cumulative inference compute output duration in microseconds",
                s -> micros(s.computeOutput.sum()));
    }

    private void firstResponses() {
        if (options.histogramLatencies()) {
            family(
                    MetricsOptions.FIRST_RESPONSE,
                    "histogram",
                    "Duration from request to first response in milliseconds");
            for (EngineServable servable : servables) {
                Histogram first = servable.statistics().firstResponse;
                if (first != null) {
                    histogram(MetricsOptions.FIRST_RESPONSE, labels(servable), first, 1e6);
                }
            }
        }
    }

    private void summaries() {
        if (!options.summaryLatencies()) {
            return;
        }
        // cache hits would lower the summary of the computed requests
        summary("nv_inference_request_summary_us", "Request time", s -> s.request, s -> !s.cached());
        summary("nv_inference_queue_summary_us", "Queuing time", s -> s.queue, s -> true);
        summary("nv_inference_compute_input_summary_us", "Compute input time", s -> s.computeInput, s -> true);
        summary("nv_inference_compute_infer_summary_us", "Compute inference time", s -> s.computeInfer, s -> true);
        summary("nv_inference_compute_output_summary_us", "Compute output time", s -> s.computeOutput, s -> true);
        if (servables.stream().anyMatch(EngineServable::cached)) {
            summary("nv_cache_hit_summary_per_model", "Cache hit time", s -> s.cacheHit, EngineServable::cached);
            summary("nv_cache_miss_summary_per_model", "Cache miss time", s -> s.cacheMiss, EngineServable::cached);
        }
    }

    private void cache(Map<String, Long> figures) {
        if (servables.stream().anyMatch(EngineServable::cached)) {
            cached("nv_cache_num_hits_per_model", "Number of cache hits per model", s -> s.cacheHits.count());
            cached("nv_cache_num_misses_per_model", "Number of cache misses per model", s -> s.cacheMisses.count());
            cached(
                    "nv_cache_hit_duration_per_model",
                    "Total cache hit duration per model, in microseconds",
                    s -> micros(s.cacheHits.nanos()));
            cached(
                    "nv_cache_miss_duration_per_model",
                    "Total cache miss duration per model, in microseconds",
                    s -> micros(s.cacheMisses.nanos()));
        }
        new TreeMap<>(figures).forEach((name, value) -> {
            String full = "nereid_cache_" + name.replaceAll("[^a-zA-Z0-9_]", "_");
            family(full, "gauge", "Response cache: " + name.replace('\n', ' '));
            sample(full, "", value);
        });
    }

    private void own() {
        gauge(
                "nereid_inference_in_flight",
                "Requests accepted and not yet completed",
                s -> s.statistics().inFlight());
        gauge(
                "nereid_model_memory_bytes",
                "Memory held by a model, as estimated by its backend",
                s -> Math.max(0, s.memoryBytes()));
        family("nereid_batch_cut", "counter", "Number of batches by the reason why they were closed");
        for (EngineServable servable : servables) {
            for (BatchCloseReason cut : BatchCloseReason.values()) {
                sample(
                        "nereid_batch_cut",
                        labels(servable) + ",reason=\"" + cut.name().toLowerCase(Locale.ROOT) + '"',
                        servable.statistics().cuts[cut.ordinal()].sum());
            }
        }
        histogram("nereid_request_duration_seconds", "Time from arrival to response", s -> s.request);
        histogram("nereid_queue_duration_seconds", "Time in the queue", s -> s.queue);
        histogram("nereid_compute_duration_seconds", "Time of the run in the backend", s -> s.compute);
        family("nereid_batch_size", "histogram", "Rows per execution");
        for (EngineServable servable : servables) {
            batchSizes(labels(servable), servable.statistics().batches);
        }
    }

    /**
     * Writes the metrics that models report themselves: one family per name for all models, and one sample per set of
     * labels.
     */
    private void ofModels() {
        Map<String, List<ModelMetric>> families = new TreeMap<>();
        for (EngineServable servable : servables) {
            for (ModelMetric metric : servable.metrics()) {
                List<ModelMetric> same = families.computeIfAbsent(metric.name(), name -> new ArrayList<>());
                // a metric family has one type: skip metrics of the same name and another type
                if (same.isEmpty() || same.get(0).kind() == metric.kind()) {
                    same.add(metric);
                }
            }
        }
        families.forEach((name, same) -> {
            ModelMetric first = same.get(0);
            String help = first.help().replace("\\", "\\\\").replace("\n", "\\n");
            family(name, first.kind().name().toLowerCase(Locale.ROOT), help);
            Map<String, Sample> samples = new TreeMap<>();
            for (ModelMetric metric : same) {
                for (Sample sample : metric.samples()) {
                    samples.merge(labels(sample), sample, (a, b) -> sum(first.kind(), a, b));
                }
            }
            samples.forEach((labels, sample) -> {
                if (first.kind() == ModelMetric.Kind.HISTOGRAM) {
                    histogram(name, labels, sample);
                } else {
                    sample(name, labels, sample.value());
                }
            });
        });
    }

    /** Merges two samples with equal labels: counters and histograms are added, of gauges the last one is kept. */
    private static Sample sum(ModelMetric.Kind kind, Sample a, Sample b) {
        if (kind == ModelMetric.Kind.GAUGE || !Arrays.equals(a.bounds(), b.bounds())) {
            return b;
        }
        long[] counts = a.counts().clone();
        for (int i = 0; i < counts.length; i++) {
            counts[i] += b.counts()[i];
        }
        return new Sample(a.labels(), a.value() + b.value(), a.bounds(), counts);
    }

    private void histogram(String name, String labels, Sample h) {
        long below = 0;
        String more = labels.isEmpty() ? "" : labels + ',';
        for (int i = 0; i < h.counts().length; i++) {
            below += h.counts()[i];
            String bound = i < h.bounds().length ? number(h.bounds()[i]) : "+Inf";
            sample(name + "_bucket", more + "le=\"" + bound + '"', below);
        }
        sample(name + "_sum", labels, h.value());
        sample(name + "_count", labels, below);
    }

    private static String labels(Sample sample) {
        List<String> labels = new ArrayList<>();
        sample.labels().forEach((name, value) -> labels.add(name + "=\"" + escaped(value) + '"'));
        return String.join(",", labels);
    }

    private void batchSizes(String labels, BatchStatistics batches) {
        long[] bounds = Histogram.sizeBounds();
        long[] counts = new long[bounds.length + 1];
        long[] rows = new long[1];
        batches.forEach((size, n) -> {
            long runs = size.runs.sum();
            int i = 0;
            while (i < bounds.length && n > bounds[i]) {
                i++;
            }
            counts[i] += runs;
            rows[0] += runs * n;
        });
        buckets("nereid_batch_size", labels, bounds, i -> counts[i], rows[0], 1);
    }

    private void host(HostMetrics figures) {
        if (!options.host()) {
            return;
        }
        HostMetrics.Reading host = figures.read();
        single("nv_cpu_utilization", "CPU utilization rate [0.0 - 1.0]", host.busy());
        single("nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes", host.totalBytes());
        single("nv_cpu_memory_used_bytes", "CPU used memory (RAM), in bytes", host.usedBytes());
    }

    private void single(String name, String help, double value) {
        if (!Double.isNaN(value)) {
            family(name, "gauge", help);
            sample(name, "", value);
        }
    }

    private static double micros(long nanos) {
        return Math.floor(nanos / 1_000.0);
    }

    private void counter(String name, String help, ToDoubleFunction<ModelStatistics> value) {
        family(name, "counter", help);
        for (EngineServable servable : servables) {
            sample(name, labels(servable), value.applyAsDouble(servable.statistics()));
        }
    }

    private void cached(String name, String help, ToDoubleFunction<ModelStatistics> value) {
        family(name, "counter", help);
        for (EngineServable servable : servables) {
            if (servable.cached()) {
                sample(name, labels(servable), value.applyAsDouble(servable.statistics()));
            }
        }
    }

    private void gauge(String name, String help, ToDoubleFunction<EngineServable> value) {
        family(name, "gauge", help);
        for (EngineServable servable : servables) {
            sample(name, labels(servable), value.applyAsDouble(servable));
        }
    }

    private void summary(
            String name,
            String help,
            Function<LatencySummaries, SlidingQuantiles> choice,
            Predicate<EngineServable> which) {
        family(name, "summary", help + " in microseconds, of the last minute");
        for (EngineServable servable : servables) {
            @Nullable LatencySummaries summaries = servable.statistics().summaries;
            if (summaries != null && which.test(servable)) {
                SlidingQuantiles values = choice.apply(summaries);
                String labels = labels(servable);
                for (double q : options.quantiles().keySet()) {
                    sample(name, labels + ",quantile=\"" + number(q) + '"', values.quantile(q) / 1e3);
                }
                sample(name + "_sum", labels, micros(values.sum()));
                sample(name + "_count", labels, values.count());
            }
        }
    }

    private void histogram(String name, String help, Function<ModelStatistics, Histogram> choice) {
        family(name, "histogram", help);
        for (EngineServable servable : servables) {
            histogram(name, labels(servable), choice.apply(servable.statistics()), 1e9);
        }
    }

    private void histogram(String name, String labels, Histogram h, double unit) {
        buckets(name, labels, h.bounds(), h::count, h.sum(), unit);
    }

    private interface Counts {
        long at(int bucket);
    }

    private void buckets(String name, String labels, long[] bounds, Counts counts, long sum, double unit) {
        long below = 0;
        for (int i = 0; i < bounds.length; i++) {
            below += counts.at(i);
            sample(name + "_bucket", labels + ",le=\"" + number(bounds[i] / unit) + '"', below);
        }
        below += counts.at(bounds.length);
        sample(name + "_bucket", labels + ",le=\"+Inf\"", below);
        sample(name + "_sum", labels, sum / unit);
        sample(name + "_count", labels, below);
    }

    private void family(String name, String type, String help) {
        page.append("# HELP ").append(name).append(' ').append(help).append('\n');
        page.append("# TYPE ").append(name).append(' ').append(type).append('\n');
    }

    private void sample(String name, String labels, double value) {
        page.append(name);
        if (!labels.isEmpty()) {
            page.append('{').append(labels).append('}');
        }
        page.append(' ').append(number(value)).append('\n');
    }

    private static String labels(EngineServable servable) {
        ServableId id = servable.metadata().id();
        StringBuilder labels = new StringBuilder("model=\"")
                .append(escaped(id.model()))
                .append("\",version=\"")
                .append(id.version())
                .append('"');
        Set<String> names = new HashSet<>();
        servable.config().metricTags().forEach((tag, value) -> {
            String name = "_" + tag.replaceAll("[^a-zA-Z0-9_]", "_");
            // two tags may map to the same label name, which must be unique
            if (names.add(name)) {
                labels.append(',')
                        .append(name)
                        .append("=\"")
                        .append(escaped(value))
                        .append('"');
            }
        });
        return labels.toString();
    }

    private static String escaped(String value) {
        return value.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n");
    }

    private static String number(double value) {
        return value == Math.rint(value) && Math.abs(value) < 1e15
                ? Long.toString((long) value)
                : Double.isNaN(value) ? "NaN" : String.format(Locale.ROOT, "%s", value);
    }
}
