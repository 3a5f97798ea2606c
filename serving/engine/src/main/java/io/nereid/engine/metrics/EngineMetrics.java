// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.metrics;

import static io.nereid.observe.metrics.MetricType.COUNTER;
import static io.nereid.observe.metrics.MetricType.GAUGE;
import static io.nereid.observe.metrics.MetricType.HISTOGRAM;
import static io.nereid.observe.metrics.MetricType.SUMMARY;

import io.nereid.backend.ModelMetric;
import io.nereid.backend.ModelMetric.Sample;
import io.nereid.engine.options.MetricsOptions;
import io.nereid.engine.servable.EngineServable;
import io.nereid.engine.servable.ShadowTraffic;
import io.nereid.engine.statistics.BatchStatistics;
import io.nereid.engine.statistics.Histogram;
import io.nereid.engine.statistics.LatencySummaries;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.engine.statistics.SlidingQuantiles;
import io.nereid.observe.metrics.Exemplar;
import io.nereid.observe.metrics.LabelSet;
import io.nereid.observe.metrics.MetricType;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.objective.ObjectiveStatus;
import io.nereid.spi.ServableId;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/**
 * Writes the engine's metrics: the ones that Triton's dashboards use under Triton's names, and histograms and gauges
 * under Nereid's own names. Confined to one thread.
 */
public final class EngineMetrics {
    private final MetricsWriter page;
    private final List<Labelled> servables;
    private final MetricsOptions options;

    /** A version and the labels of its samples. */
    private record Labelled(EngineServable servable, LabelSet labels) {
        ModelStatistics statistics() {
            return servable.statistics();
        }
    }

    public EngineMetrics(MetricsWriter page, Collection<? extends EngineServable> servables, MetricsOptions options) {
        this.page = page;
        this.servables = servables.stream().map(s -> new Labelled(s, labels(s))).toList();
        this.options = options;
    }

    /** Writes the metrics of the servables, the cache and the host. */
    public void write(HostMetrics host, Map<String, Long> cache) {
        write(cache);
        host(host);
    }

    /**
     * Writes all metrics.
     *
     * @param reserved the bytes that the lifecycle manager has reserved for models
     * @param limit the limit of these bytes; 0 for none
     */
    public void write(HostMetrics host, Map<String, Long> cache, ShadowTraffic labelled, long reserved, long limit) {
        write(cache);
        single("nereid_memory_reserved_bytes", "Memory reserved for models, for loading ones by estimate", reserved);
        single("nereid_memory_limit_bytes", "Limit of the memory reserved for models; 0 for no limit", limit);
        labelled(
                "nereid_label_requests_total",
                "Requests by label, and copies of them for shadows",
                labelled.requests());
        labelled(
                "nereid_shadow_dropped_total", "Copies for shadows that were dropped or timed out", labelled.dropped());
        host(host);
    }

    private void labelled(String name, String help, Map<ShadowTraffic.Key, ShadowTraffic.Counter> counts) {
        page.family(name, COUNTER, help);
        counts.forEach((key, count) -> page.sample(
                LabelSet.of("model", key.model())
                        .with("label", key.label())
                        .with("version", key.version())
                        .with("shadow", Boolean.toString(key.shadow())),
                count.sum(),
                count.exemplar()));
    }

    private void write(Map<String, Long> cache) {
        counter(
                "nv_inference_request_success",
                "Number of successful inference requests, all batch sizes",
                ModelStatistics::success);
        page.family("nv_inference_request_failure", COUNTER, "Number of failed inference requests, all batch sizes");
        for (Labelled servable : servables) {
            for (ModelStatistics.Failure reason : ModelStatistics.Failure.values()) {
                page.sample(
                        labels(servable.servable(), reason.toString()),
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
            page.family(
                    MetricsOptions.FIRST_RESPONSE,
                    HISTOGRAM,
                    "Duration from request to first response in milliseconds");
            for (Labelled servable : servables) {
                Histogram first = servable.statistics().firstResponse;
                if (first != null) {
                    histogram(servable.labels(), first, 1e6);
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
        if (servables.stream().anyMatch(s -> s.servable().cached())) {
            summary("nv_cache_hit_summary_per_model", "Cache hit time", s -> s.cacheHit, EngineServable::cached);
            summary("nv_cache_miss_summary_per_model", "Cache miss time", s -> s.cacheMiss, EngineServable::cached);
        }
    }

    private void cache(Map<String, Long> figures) {
        if (servables.stream().anyMatch(s -> s.servable().cached())) {
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
            single(full, "Response cache: " + name.replace('\n', ' '), value);
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
        page.family("nereid_batch_cut", COUNTER, "Number of batches by the reason why they were closed");
        for (Labelled servable : servables) {
            for (BatchCloseReason cut : BatchCloseReason.values()) {
                page.sample(
                        servable.labels().with("reason", cut.name().toLowerCase(Locale.ROOT)),
                        servable.statistics().cuts[cut.ordinal()].sum());
            }
        }
        objectives();
        histogram("nereid_request_duration_seconds", "Time from arrival to response", s -> s.request);
        histogram("nereid_queue_duration_seconds", "Time in the queue", s -> s.queue);
        histogram("nereid_compute_duration_seconds", "Time of the run in the backend", s -> s.compute);
        page.family("nereid_batch_size", HISTOGRAM, "Rows per execution");
        for (Labelled servable : servables) {
            batchSizes(servable.labels(), servable.statistics().batches);
        }
    }

    /** Writes what is done for latency objectives, if a model has one. */
    private void objectives() {
        Map<Labelled, ObjectiveStatus> kept = new LinkedHashMap<>();
        for (Labelled servable : servables) {
            ObjectiveStatus status = servable.servable().objective();
            if (status != null) {
                kept.put(servable, status);
            }
        }
        if (kept.isEmpty()) {
            return;
        }
        objective(
                kept,
                "objective_seconds",
                GAUGE,
                "The latency objective of a model",
                s -> s.objective().nanos() / 1e9);
        objective(
                kept,
                "latency_seconds",
                GAUGE,
                "The objective's percentile of the last window, from the arrival in the queue to the end of the run",
                s -> s.latencyNanos() / 1e9);
        objective(kept, "queue_delay_seconds", GAUGE, "Longest wait for further requests", s -> s.delayNanos() / 1e9);
        objective(kept, "batch_rows", GAUGE, "Largest batch of several requests", ObjectiveStatus::maxRows);
        objective(kept, "instances", GAUGE, "Instances that get runs", ObjectiveStatus::instances);
        objective(
                kept,
                "planned_ratio",
                GAUGE,
                "Share of the objective that the expected time of an accepted request may take",
                ObjectiveStatus::plannedShare);
        objective(
                kept,
                "refused_total",
                COUNTER,
                "Requests refused because they would have missed the objective",
                ObjectiveStatus::refused);
        objective(
                kept, "changes_total", COUNTER, "Changes of delay, batch size or instances", ObjectiveStatus::changes);
    }

    private void objective(
            Map<Labelled, ObjectiveStatus> kept,
            String name,
            MetricType type,
            String help,
            ToDoubleFunction<ObjectiveStatus> value) {
        page.family("nereid_slo_" + name, type, help);
        kept.forEach((servable, status) -> page.sample(
                servable.labels().with("percentile", status.objective().metric()), value.applyAsDouble(status)));
    }

    /**
     * Writes the metrics that models report themselves: one family per name for all models, and one sample per set of
     * labels.
     */
    private void ofModels() {
        Map<String, List<ModelMetric>> families = new TreeMap<>();
        for (Labelled servable : servables) {
            for (ModelMetric metric : servable.servable().metrics()) {
                List<ModelMetric> same = families.computeIfAbsent(metric.name(), name -> new ArrayList<>());
                // a metric family has one type: skip metrics of the same name and another type
                if (same.isEmpty() || same.get(0).kind() == metric.kind()) {
                    same.add(metric);
                }
            }
        }
        families.forEach((name, same) -> {
            ModelMetric first = same.get(0);
            page.family(name, type(first.kind()), first.help());
            Map<LabelSet, Sample> samples = new TreeMap<>();
            for (ModelMetric metric : same) {
                for (Sample sample : metric.samples()) {
                    samples.merge(LabelSet.of(sample.labels()), sample, (a, b) -> sum(first.kind(), a, b));
                }
            }
            samples.forEach((labels, sample) -> {
                if (first.kind() == ModelMetric.Kind.HISTOGRAM) {
                    double[] bounds = sample.bounds();
                    page.histogram(labels, bounds, Arrays.copyOf(sample.counts(), bounds.length + 1), sample.value());
                } else {
                    page.sample(labels, sample.value());
                }
            });
        });
    }

    private static MetricType type(ModelMetric.Kind kind) {
        return switch (kind) {
            case COUNTER -> COUNTER;
            case GAUGE -> GAUGE;
            case HISTOGRAM -> HISTOGRAM;
        };
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

    private void batchSizes(LabelSet labels, BatchStatistics batches) {
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
        page.histogram(
                labels, Arrays.stream(bounds).asDoubleStream().toArray(), counts, rows[0], batches.exemplars::at);
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
            page.family(name, GAUGE, help);
            page.sample(LabelSet.NONE, value);
        }
    }

    private static double micros(long nanos) {
        return Math.floor(nanos / 1_000.0);
    }

    private void counter(String name, String help, ToDoubleFunction<ModelStatistics> value) {
        page.family(name, COUNTER, help);
        for (Labelled servable : servables) {
            page.sample(servable.labels(), value.applyAsDouble(servable.statistics()));
        }
    }

    private void cached(String name, String help, ToDoubleFunction<ModelStatistics> value) {
        page.family(name, COUNTER, help);
        for (Labelled servable : servables) {
            if (servable.servable().cached()) {
                page.sample(servable.labels(), value.applyAsDouble(servable.statistics()));
            }
        }
    }

    private void gauge(String name, String help, ToDoubleFunction<EngineServable> value) {
        page.family(name, GAUGE, help);
        for (Labelled servable : servables) {
            page.sample(servable.labels(), value.applyAsDouble(servable.servable()));
        }
    }

    private void summary(
            String name,
            String help,
            Function<LatencySummaries, SlidingQuantiles> choice,
            Predicate<EngineServable> which) {
        page.family(name, SUMMARY, help + " in microseconds, of the last minute");
        double[] quantiles = options.quantiles().keySet().stream()
                .mapToDouble(Double::doubleValue)
                .toArray();
        for (Labelled servable : servables) {
            @Nullable LatencySummaries summaries = servable.statistics().summaries;
            if (summaries != null && which.test(servable.servable())) {
                SlidingQuantiles observed = choice.apply(summaries);
                double[] values = Arrays.stream(quantiles)
                        .map(q -> observed.quantile(q) / 1e3)
                        .toArray();
                page.summary(servable.labels(), quantiles, values, micros(observed.sum()), observed.count());
            }
        }
    }

    private void histogram(String name, String help, Function<ModelStatistics, Histogram> choice) {
        page.family(name, HISTOGRAM, help);
        for (Labelled servable : servables) {
            histogram(servable.labels(), choice.apply(servable.statistics()), 1e9);
        }
    }

    private void histogram(LabelSet labels, Histogram h, double unit) {
        double[] bounds = Arrays.stream(h.bounds()).mapToDouble(b -> b / unit).toArray();
        long[] counts = new long[bounds.length + 1];
        Arrays.setAll(counts, h::count);
        page.histogram(labels, bounds, counts, h.sum() / unit, i -> {
            Exemplar traced = h.exemplars.at(i);
            return traced == null ? null : new Exemplar(traced.traceId(), traced.value() / unit);
        });
    }

    private static LabelSet labels(EngineServable servable) {
        return labels(servable, null);
    }

    /** @param reason the label of that name, which is between the others, as with Triton; null for none */
    private static LabelSet labels(EngineServable servable, @Nullable String reason) {
        ServableId id = servable.metadata().id();
        LabelSet labels = LabelSet.of("model", id.model());
        labels = (reason == null ? labels : labels.with("reason", reason)).with("version", id.version());
        Set<String> names = new HashSet<>();
        for (Map.Entry<String, String> tag : servable.config().metricTags().entrySet()) {
            String name = "_" + tag.getKey().replaceAll("[^a-zA-Z0-9_]", "_");
            // two tags may map to the same label name, which must be unique
            if (names.add(name)) {
                labels = labels.with(name, tag.getValue());
            }
        }
        return labels;
    }
}
