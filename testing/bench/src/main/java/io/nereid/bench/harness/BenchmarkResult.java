// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.harness;

import java.io.PrintStream;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * One line of the results table. Immutable.
 *
 * @param work the workload
 * @param base the baseline, as min/med/max; empty without one
 * @param ours Nereid's measurement, as min/med/max, or why it is missing
 * @param ratio the ratio of the medians; empty without one
 * @param more further measurements
 * @param target the target
 * @param verdict PASS, MISS, - without a target, SKIPPED without a measurement
 */
public record BenchmarkResult(
        String work, String base, String ours, String ratio, String more, String target, String verdict) {
    public static BenchmarkResult skipped(String work, String why) {
        return new BenchmarkResult(work, "", why, "", "", "", "SKIPPED");
    }

    public static String verdict(boolean reached) {
        return reached ? "PASS" : "MISS";
    }

    public static double median(double[] values) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        int n = sorted.length;
        return n == 0 ? Double.NaN : n % 2 == 1 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    }

    public static String spread(double[] values, String unit) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        if (sorted.length == 0) {
            return "-";
        }
        String format = median(sorted) >= 100 ? "%.0f/%.0f/%.0f %s" : "%.2f/%.2f/%.2f %s";
        return String.format(Locale.ROOT, format, sorted[0], median(sorted), sorted[sorted.length - 1], unit);
    }

    public static void print(List<BenchmarkResult> table, PrintStream out) {
        String[][] cells = new String[table.size() + 1][];
        cells[0] = new String[] {"work", "compared with", "Nereid", "ratio", "more", "target", ""};
        for (int i = 0; i < table.size(); i++) {
            BenchmarkResult f = table.get(i);
            cells[i + 1] = new String[] {f.work, f.base, f.ours, f.ratio, f.more, f.target, f.verdict};
        }
        int[] width = new int[7];
        for (String[] row : cells) {
            for (int c = 0; c < 7; c++) {
                width[c] = Math.max(width[c], row[c].length());
            }
        }
        for (int r = 0; r < cells.length; r++) {
            StringBuilder line = new StringBuilder("|");
            StringBuilder rule = new StringBuilder("|");
            for (int c = 0; c < 7; c++) {
                line.append(' ')
                        .append(cells[r][c])
                        .append(" ".repeat(width[c] - cells[r][c].length()))
                        .append(" |");
                rule.append("-".repeat(width[c] + 2)).append('|');
            }
            out.println(line);
            if (r == 0) {
                out.println(rule);
            }
        }
    }
}
