// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.report;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.perf.load.LoadResult;
import io.nereid.app.perf.load.ServerTimes;
import io.nereid.app.perf.report.PerfReport.AssertionCheck;

/** The report for programs. The names of its numbers end with their units. Stateless. */
public final class JsonReport {
    private static final ObjectMapper JSON = new ObjectMapper();

    private JsonReport() {}

    /** The whole report. */
    public static ObjectNode of(PerfReport report) {
        ObjectNode root = JSON.createObjectNode();
        root.put("model", report.model()).put("version", report.version());
        root.put("server", report.server()).put("protocol", report.protocol()).put("batch_size", report.batchSize());
        ArrayNode loads = root.putArray("loads");
        report.results().forEach(result -> load(result, report.batchSize(), loads.addObject()));
        ArrayNode assertions = root.putArray("assertions");
        for (AssertionCheck check : report.checks()) {
            ObjectNode each = assertions.addObject().put("assertion", check.text());
            each.put("load", check.load());
            number(each, "actual", check.actual());
            each.put("unit", check.unit().strip()).put("passed", check.passed());
        }
        ArrayNode warnings = root.putArray("warnings");
        report.warnings().forEach(warnings::add);
        root.put("passed", report.passed()).put("interrupted", report.interrupted());
        return root;
    }

    private static void load(LoadResult result, int batchSize, ObjectNode to) {
        to.put("mode", result.level().open() ? "open_loop" : "closed_loop");
        if (result.level().open()) {
            to.put("requested_rate_requests_per_second", result.level().value());
        } else {
            to.put("concurrency", (long) result.level().value());
        }
        to.put("duration_seconds", rounded(result.seconds()));
        to.put("requests_succeeded", result.succeeded());
        to.put("requests_failed", result.failed());
        to.put("requests_unfinished", result.unfinished());
        to.put("rate_requests_per_second", rounded(result.rate()));
        to.put("rate_inferences_per_second", rounded(result.rate() * batchSize));
        number(to, "latency_mean_ms", result.meanMillis());
        number(to, "latency_min_ms", result.minMillis());
        for (double percentile : Percentiles.SHOWN) {
            number(to, "latency_" + Percentiles.key(percentile) + "_ms", result.percentileMillis(percentile));
        }
        number(to, "latency_max_ms", result.maxMillis());
        if (result.level().open()) {
            number(to, "send_delay_p50_ms", result.delayMillis(50));
            number(to, "send_delay_p99_ms", result.delayMillis(99));
        }
        if (result.stable() != null) {
            to.put("stable", result.stable());
        }
        to.put("windows", result.windows());
        ServerTimes server = result.server();
        if (server != null) {
            ObjectNode times = to.putObject("server");
            times.put("requests", server.requests()).put("inferences", server.inferences());
            times.put("executions", server.executions()).put("cache_hits", server.cacheHits());
            times.put("batch_size_mean", rounded(server.batchSize()));
            times.put("request_mean_ms", rounded(server.meanMillis(server.totalNanos())));
            times.put("queue_mean_ms", rounded(server.meanMillis(server.queueNanos())));
            times.put("compute_input_mean_ms", rounded(server.meanMillis(server.computeInputNanos())));
            times.put("compute_infer_mean_ms", rounded(server.meanMillis(server.computeInferNanos())));
            times.put("compute_output_mean_ms", rounded(server.meanMillis(server.computeOutputNanos())));
        }
        if (!result.failures().isEmpty()) {
            ObjectNode failures = to.putObject("failures");
            result.failures().forEach(failures::put);
        }
    }

    /** A number; null where there is none, as JSON has no NaN. */
    private static void number(ObjectNode to, String name, double value) {
        if (Double.isNaN(value)) {
            to.putNull(name);
        } else {
            to.put(name, rounded(value));
        }
    }

    /** With six digits after the point: nanoseconds of a number in milliseconds. */
    private static double rounded(double value) {
        return Math.round(value * 1e6) / 1e6;
    }
}
