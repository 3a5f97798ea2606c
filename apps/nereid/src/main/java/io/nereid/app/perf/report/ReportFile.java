// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.report;

import io.nereid.app.perf.load.LoadResult;
import io.nereid.app.perf.load.ServerTimes;
import io.nereid.app.perf.report.PerfReport.AssertionCheck;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** Writes reports to files; the ending of a name decides what it becomes: a page, charts, JSON or CSV. Stateless. */
public final class ReportFile {
    private static final List<String> ENDINGS = List.of(".html", ".svg", ".json", ".csv");

    private ReportFile() {}

    /**
     * Checks the name of a report before the measurement.
     *
     * @throws ServingException INVALID_ARGUMENT for a name whose ending is not known, NOT_FOUND without its directory
     */
    public static void check(Path file) {
        if (ENDINGS.stream().noneMatch(name(file)::endsWith)) {
            throw ServingException.invalidArgument("--report '" + file
                    + "' does not say what to write (expected: a name that ends with .html, .svg, .json or .csv)");
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

    /** Writes a report. @throws ServingException UNAVAILABLE when the file cannot be written */
    public static void write(Path file, PerfReport report) {
        String name = name(file);
        String text = name.endsWith(".html")
                ? page(report)
                : name.endsWith(".svg")
                        ? charts(report)
                        : name.endsWith(".json") ? JsonReport.of(report).toPrettyString() + "\n" : CsvReport.of(report);
        try {
            Files.writeString(file, text);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.UNAVAILABLE, "--report '" + file + "' cannot be written: " + e.getMessage(), e);
        }
    }

    /** Both charts in one picture. */
    private static String charts(PerfReport report) {
        int height = 2 * LineChart.HEIGHT;
        return "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"" + LineChart.WIDTH + "\" height=\"" + height
                + "\" viewBox=\"0 0 " + LineChart.WIDTH + " " + height
                + "\" font-family=\"sans-serif\" font-size=\"12\" fill=\"#333\">\n"
                + "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
                + load(report).elements(0) + curve(report).elements(LineChart.HEIGHT) + "</svg>\n";
    }

    private static LineChart load(PerfReport report) {
        LineChart chart = new LineChart(
                "Latency of " + report.model() + " over load", "successful requests per second", "latency in ms");
        for (double percentile : Percentiles.SHOWN) {
            List<double[]> points = new ArrayList<>();
            for (LoadResult result : report.results()) {
                points.add(new double[] {result.rate(), result.percentileMillis(percentile)});
            }
            chart.line(Percentiles.key(percentile).replace("p999", "p99.9"), points);
        }
        return chart;
    }

    private static LineChart curve(PerfReport report) {
        LineChart chart = new LineChart("Latency by percentile", "percentile", "latency in ms");
        for (LoadResult result : report.results()) {
            List<double[]> points = new ArrayList<>();
            for (double percentile : Percentiles.CURVE) {
                // what lies behind the number of requests would only repeat the maximum
                if (result.succeeded() * (1 - percentile / 100) >= 1 || percentile == 0) {
                    points.add(new double[] {nines(percentile), result.percentileMillis(percentile)});
                }
            }
            chart.line(result.level().describe(), points);
        }
        List<LineChart.Tick> ticks = new ArrayList<>();
        for (double percentile : new double[] {0, 50, 90, 99, 99.9, 99.99, 99.999}) {
            String text = Double.toString(percentile).replaceFirst("\\.0$", "");
            ticks.add(new LineChart.Tick(nines(percentile), text + "%"));
        }
        chart.ticks(ticks);
        return chart;
    }

    /** The position on an axis on which each nine takes the same distance. */
    private static double nines(double percentile) {
        return -Math.log10(1 - percentile / 100);
    }

    private static String page(PerfReport report) {
        StringBuilder html = new StringBuilder();
        String title = "Performance of " + report.model();
        html.append("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>");
        html.append(LineChart.escaped(title))
                .append("</title>\n<style>body{font-family:sans-serif;margin:2em;color:#333;");
        html.append(
                "background:#fff}table{border-collapse:collapse;margin:1em 0}th,td{padding:.3em .7em;text-align:right;white-space:nowrap;white-space:nowrap;");
        html.append(
                "border-bottom:1px solid #ddd}th:first-child,td:first-child{text-align:left}.bad{color:#b00020}</style>");
        html.append("</head><body>\n<h1>").append(LineChart.escaped(title)).append("</h1>\n<p>version ");
        html.append(LineChart.escaped(report.version())).append(" at ").append(LineChart.escaped(report.server()));
        html.append(", ")
                .append(LineChart.escaped(report.protocol()))
                .append(", batch size ")
                .append(report.batchSize());
        html.append(report.interrupted() ? ", ended before the last load" : "").append("</p>\n");
        for (String warning : report.warnings()) {
            html.append("<p class=\"bad\">").append(LineChart.escaped(warning)).append("</p>\n");
        }
        results(report, html);
        if (!report.checks().isEmpty()) {
            html.append("<table><tr><th>assertion</th><th>load</th><th>measured</th><th></th></tr>\n");
            for (AssertionCheck check : report.checks()) {
                html.append("<tr><td>").append(LineChart.escaped(check.text())).append("</td><td>");
                html.append(check.load()).append("</td><td>").append(ResultTable.number(check.actual()));
                html.append(check.unit()).append("</td><td").append(check.passed() ? ">holds" : " class=\"bad\">fails");
                html.append("</td></tr>\n");
            }
            html.append("</table>\n");
        }
        return html.append(charts(report)).append("</body></html>\n").toString();
    }

    private static void results(PerfReport report, StringBuilder html) {
        html.append("<table><tr><th>load</th><th>requests/s</th><th>mean ms</th>");
        for (double percentile : Percentiles.SHOWN) {
            html.append("<th>")
                    .append(Percentiles.key(percentile).replace("p999", "p99.9"))
                    .append(" ms</th>");
        }
        html.append("<th>failed</th><th>stable</th><th>server: queue ms</th><th>input ms</th><th>infer ms</th>");
        html.append("<th>output ms</th><th>batch</th></tr>\n");
        for (LoadResult result : report.results()) {
            html.append("<tr><td>").append(result.level().describe());
            cell(html, result.rate());
            cell(html, result.meanMillis());
            for (double percentile : Percentiles.SHOWN) {
                cell(html, result.percentileMillis(percentile));
            }
            html.append("</td><td>")
                    .append(result.failed() + result.unfinished())
                    .append("</td><td>");
            html.append(result.stable() == null ? "-" : result.stable() ? "yes" : "no");
            ServerTimes server = result.server();
            if (server == null || server.requests() == 0) {
                html.append("</td><td>-".repeat(5));
            } else {
                cell(html, server.meanMillis(server.queueNanos()));
                cell(html, server.meanMillis(server.computeInputNanos()));
                cell(html, server.meanMillis(server.computeInferNanos()));
                cell(html, server.meanMillis(server.computeOutputNanos()));
                cell(html, server.batchSize());
            }
            html.append("</td></tr>\n");
        }
        html.append("</table>\n");
    }

    private static void cell(StringBuilder html, double value) {
        html.append("</td><td>").append(ResultTable.number(value));
    }
}
