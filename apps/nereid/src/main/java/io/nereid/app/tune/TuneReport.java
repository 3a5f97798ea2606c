// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.perf.report.LineChart;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.parameters.LatencyObjective;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;

/**
 * What a search has found, as JSON and as a picture. Immutable.
 *
 * @param model the model's name
 * @param server where it was measured
 * @param seconds the time that the search took
 * @param grid the number of measurements of the whole grid
 * @param fields the fields of {@code config.pbtxt} that the proposed configuration changes; empty for none
 * @param written the file that they were written to; empty for none
 */
record TuneReport(
        String model,
        String server,
        LatencyObjective objective,
        VariantSearch.Outcome outcome,
        double seconds,
        long grid,
        String fields,
        String written) {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final List<String> ENDINGS = List.of(".svg", ".html", ".json");

    /** Whether the proposed configuration keeps the objective. */
    boolean kept() {
        return outcome.after().keeps(objective.millis());
    }

    ObjectNode json() {
        ObjectNode root = JSON.createObjectNode().put("model", model).put("server", server);
        root.put("objective_percentile", objective.percentile()).put("objective_latency_ms", objective.millis());
        root.put("objective_kept", kept()).put("improved", outcome.improved());
        result(outcome.before(), root.putObject("before"));
        result(outcome.after(), root.putObject("after"));
        root.put("measurements", outcome.measurements()).put("measurements_of_the_grid", grid);
        root.put("duration_seconds", Math.round(seconds * 10) / 10.0);
        root.put("fields", fields);
        if (!written.isEmpty()) {
            root.put("written_to", written);
        }
        ArrayNode all = root.putArray("results");
        outcome.results().forEach(each -> result(each, all.addObject()));
        ObjectNode refused = root.putObject("refused");
        outcome.refused().forEach((variant, why) -> refused.put(variant.describe(), why));
        return root;
    }

    private static void result(VariantResult result, ObjectNode to) {
        ConfigVariant variant = result.variant();
        to.put("batch_size", variant.batchSize()).put("max_queue_delay_microseconds", variant.delayMicros());
        to.put("instances", variant.instances()).put("threads", variant.threads());
        to.put("concurrency", result.concurrency()).put("rate_requests_per_second", rounded(result.rate()));
        if (Double.isNaN(result.latencyMillis())) {
            to.putNull("latency_ms");
        } else {
            to.put("latency_ms", rounded(result.latencyMillis()));
        }
        to.put("requests_failed", result.failed());
    }

    private static double rounded(double value) {
        return Math.round(value * 1e3) / 1e3;
    }

    /** Every measurement, the best ones of each latency joined (the frontier), the limit, and the two configurations. */
    String picture() {
        LineChart chart = new LineChart(
                "Rate and " + objective.metric() + " of " + model, "successful requests per second", "latency in ms");
        // What is far beyond the limit would leave nothing to see of the rest.
        double shown = 4 * objective.millis();
        List<VariantResult> results = outcome.results().stream()
                .filter(each -> each.failed() == 0 && each.latencyMillis() <= shown)
                .toList();
        chart.points("measured", results.stream().map(TuneReport::point).toList());
        chart.line("frontier", frontier(results));
        double most = results.stream().mapToDouble(VariantResult::rate).max().orElse(1);
        chart.line("limit", List.of(new double[] {0, objective.millis()}, new double[] {most, objective.millis()}));
        chart.points("before", List.of(point(outcome.before())));
        if (outcome.improved()) {
            chart.points("after", List.of(point(outcome.after())));
        }
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + LineChart.WIDTH + "\" height=\""
                + LineChart.HEIGHT
                + "\" viewBox=\"0 0 " + LineChart.WIDTH + " " + LineChart.HEIGHT
                + "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n"
                + "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n" + chart.elements(0) + "</svg>\n";
    }

    private static double[] point(VariantResult result) {
        return new double[] {result.rate(), result.latencyMillis()};
    }

    /** The results that no other one exceeds in rate at a latency that is not higher. */
    static List<double[]> frontier(List<VariantResult> results) {
        List<double[]> points = new ArrayList<>();
        double most = 0;
        for (VariantResult each : results.stream()
                .sorted(Comparator.comparingDouble(VariantResult::latencyMillis))
                .toList()) {
            if (each.rate() > most) {
                most = each.rate();
                points.add(point(each));
            }
        }
        return points;
    }

    /** Checks the name of a report before the search. */
    static void check(Path file) {
        if (ENDINGS.stream().noneMatch(name(file)::endsWith)) {
            throw ServingException.invalidArgument("--report '" + file
                    + "' does not say what to write (expected: a name that ends with .html, .svg or .json)");
        }
        Path directory = file.toAbsolutePath().getParent();
        if (directory != null && !Files.isDirectory(directory)) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND, "--report '" + file + "': there is no directory '" + directory + "'");
        }
    }

    private static String name(Path file) {
        return file.toString().toLowerCase(Locale.ROOT);
    }

    /** Writes the report. @throws ServingException UNAVAILABLE when the file cannot be written */
    void write(Path file) {
        String name = name(file);
        String text =
                name.endsWith(".json") ? json().toPrettyString() + "\n" : name.endsWith(".svg") ? picture() : page();
        try {
            Files.writeString(file, text);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.UNAVAILABLE, "--report '" + file + "' cannot be written: " + e.getMessage(), e);
        }
    }

    private String page() {
        StringBuilder html =
                new StringBuilder("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
        String title = LineChart.escaped("Tuning of " + model);
        html.append(title)
                .append("</title>\n<style>body{font-family:sans-serif;margin:2em;color:#333;background:#fff}");
        html.append("table{border-collapse:collapse;margin:1em 0}th,td{padding:.3em .7em;text-align:right;");
        html.append(
                "border-bottom:1px solid #ddd}th:first-child,td:first-child{text-align:left}</style></head><body>\n");
        html.append("<h1>").append(title).append("</h1>\n").append(picture());
        html.append("<table><tr><th>configuration</th><th>concurrency</th><th>requests/s</th><th>")
                .append(objective.metric())
                .append(" ms</th><th>failed</th></tr>\n");
        List<VariantResult> rows = new ArrayList<>(List.of(outcome.before(), outcome.after()));
        rows.addAll(outcome.results());
        for (VariantResult each : rows) {
            html.append("<tr><td>").append(each.variant().describe()).append("</td><td>");
            html.append(each.concurrency())
                    .append("</td><td>")
                    .append(number(each.rate()))
                    .append("</td><td>");
            html.append(number(each.latencyMillis())).append("</td><td>").append(each.failed());
            html.append("</td></tr>\n");
        }
        return html.append("</table>\n<pre>")
                .append(LineChart.escaped(fields))
                .append("</pre></body></html>\n")
                .toString();
    }

    /** A number with about three significant digits. */
    static String number(double value) {
        if (Double.isNaN(value)) {
            return "-";
        }
        return String.format(
                Locale.ROOT, value >= 100 ? "%.0f" : value >= 10 ? "%.1f" : value >= 1 ? "%.2f" : "%.3f", value);
    }
}
