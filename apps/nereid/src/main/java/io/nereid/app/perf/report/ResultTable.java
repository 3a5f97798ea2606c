// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.report;

import io.nereid.app.perf.load.LoadResult;
import io.nereid.app.perf.load.ServerTimes;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** The report for a terminal: a line for each load as soon as it is measured. Confined to one thread. */
public final class ResultTable {
    private static final int FAILURES = 5;
    private static final int LOAD_WIDTH = 16;
    private static final int WIDTH = 9;

    private final PrintWriter out;
    private final int batchSize;

    public ResultTable(PrintWriter out, int batchSize) {
        this.out = out;
        this.batchSize = batchSize;
    }

    /** Prints the heads of the columns. */
    public void head() {
        List<String> heads = new ArrayList<>(List.of("RATE/s"));
        if (batchSize > 1) {
            heads.add("ROWS/s");
        }
        heads.addAll(List.of("MEAN", "P50", "P90", "P95", "P99", "P99.9", "FAILED", "QUEUE", "COMPUTE", "BATCH"));
        out.println(line("LOAD", heads) + "  (times in ms)");
        out.flush();
    }

    /** Prints the line of a load, and its most frequent failures. */
    public void row(LoadResult result) {
        List<String> cells = new ArrayList<>(List.of(number(result.rate())));
        if (batchSize > 1) {
            cells.add(number(result.rate() * batchSize));
        }
        cells.add(number(result.meanMillis()));
        for (double percentile : Percentiles.SHOWN) {
            cells.add(number(result.percentileMillis(percentile)));
        }
        cells.add(Long.toString(result.failed() + result.unfinished()));
        ServerTimes server = result.server();
        if (server == null || server.requests() == 0) {
            cells.addAll(List.of("-", "-", "-"));
        } else {
            cells.add(number(server.meanMillis(server.queueNanos())));
            cells.add(number(server.meanMillis(
                    server.computeInputNanos() + server.computeInferNanos() + server.computeOutputNanos())));
            cells.add(number(server.batchSize()));
        }
        out.println(
                line(result.level().describe(), cells) + (Boolean.FALSE.equals(result.stable()) ? "  not stable" : ""));
        result.failures().entrySet().stream()
                .sorted(Map.Entry.<String, Long>comparingByValue().reversed())
                .limit(FAILURES)
                .forEach(each -> out.println("    " + each.getValue() + " failed: " + each.getKey()));
        out.flush();
    }

    private static String line(String load, List<String> cells) {
        StringBuilder line = new StringBuilder("  ").append(load);
        line.append(" ".repeat(Math.max(1, LOAD_WIDTH - load.length())));
        for (String cell : cells) {
            line.append(" ".repeat(Math.max(1, WIDTH - cell.length()))).append(cell);
        }
        return line.toString();
    }

    /** A number with about four significant digits. */
    static String number(double value) {
        if (Double.isNaN(value)) {
            return "-";
        }
        String format = value >= 1000 ? "%.0f" : value >= 100 ? "%.1f" : value >= 1 ? "%.2f" : "%.3f";
        return String.format(Locale.ROOT, format, value);
    }
}
