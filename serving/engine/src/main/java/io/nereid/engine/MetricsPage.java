// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.spi.ServableId;
import java.util.Collection;
import java.util.Locale;
import java.util.function.ToDoubleFunction;

/**
 * Writes the figures in Prometheus' text format 0.0.4, under the names that Triton's dashboards use, with histograms of
 * our own beside them. Written by hand because the client libraries append {@code _total} to a counter's name, which
 * those dashboards do not know. Confined to one thread.
 */
final class MetricsPage {
    private final StringBuilder page = new StringBuilder(4096);
    private final Collection<EngineServable> servables;

    MetricsPage(Collection<EngineServable> servables) {
        this.servables = servables;
    }

    String write() {
        counter(
                "nv_inference_request_success",
                "Number of successful inference requests, all batch sizes",
                s -> s.success.sum());
        head("nv_inference_request_failure", "counter", "Number of failed inference requests, all batch sizes");
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
        counter("nv_inference_exec_count", "Number of model executions performed", s -> s.executions.sum());
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
        head(
                "nv_inference_pending_request_count",
                "gauge",
                "Instantaneous number of pending requests awaiting execution");
        for (EngineServable servable : servables) {
            sample("nv_inference_pending_request_count", labels(servable), servable.queued());
        }
        head("nereid_inference_in_flight", "gauge", "Requests accepted and not yet answered");
        for (EngineServable servable : servables) {
            sample(
                    "nereid_inference_in_flight",
                    labels(servable),
                    servable.statistics().inFlight.sum());
        }
        head("nereid_model_memory_bytes", "gauge", "Memory held by a model, by its backend's estimate");
        for (EngineServable servable : servables) {
            sample("nereid_model_memory_bytes", labels(servable), Math.max(0, servable.memoryBytes()));
        }
        histogram("nereid_request_duration_seconds", "From arrival to answer", 1e9, s -> s.request);
        histogram("nereid_queue_duration_seconds", "Waiting for an instance", 1e9, s -> s.queue);
        histogram("nereid_compute_duration_seconds", "Running in the backend", 1e9, s -> s.compute);
        histogram("nereid_batch_size", "Rows per execution", 1, s -> s.batchSizes);
        return page.toString();
    }

    private static double micros(long nanos) {
        return Math.floor(nanos / 1_000.0);
    }

    private void counter(String name, String help, ToDoubleFunction<ModelStatistics> value) {
        head(name, "counter", help);
        for (EngineServable servable : servables) {
            sample(name, labels(servable), value.applyAsDouble(servable.statistics()));
        }
    }

    private interface Choice {
        Histogram of(ModelStatistics statistics);
    }

    private void histogram(String name, String help, double unit, Choice choice) {
        head(name, "histogram", help);
        for (EngineServable servable : servables) {
            Histogram h = choice.of(servable.statistics());
            String labels = labels(servable);
            long[] bounds = h.bounds();
            long below = 0;
            for (int i = 0; i < bounds.length; i++) {
                below += h.count(i);
                sample(name + "_bucket", labels + ",le=\"" + number(bounds[i] / unit) + '"', below);
            }
            below += h.count(bounds.length);
            sample(name + "_bucket", labels + ",le=\"+Inf\"", below);
            sample(name + "_sum", labels, h.sum() / unit);
            sample(name + "_count", labels, below);
        }
    }

    private void head(String name, String type, String help) {
        page.append("# HELP ").append(name).append(' ').append(help).append('\n');
        page.append("# TYPE ").append(name).append(' ').append(type).append('\n');
    }

    private void sample(String name, String labels, double value) {
        page.append(name)
                .append('{')
                .append(labels)
                .append("} ")
                .append(number(value))
                .append('\n');
    }

    private static String labels(EngineServable servable) {
        ServableId id = servable.metadata().id();
        String model = id.model().replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", "\\n");
        return "model=\"" + model + "\",version=\"" + id.version() + '"';
    }

    private static String number(double value) {
        return value == Math.rint(value) && Math.abs(value) < 1e15
                ? Long.toString((long) value)
                : String.format(Locale.ROOT, "%s", value);
    }
}
