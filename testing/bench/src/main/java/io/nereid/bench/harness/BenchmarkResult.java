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
    /** The 97.5 % quantile of Student's t distribution by degrees of freedom; the last one also for more. */
    private static final double[] T = {
        Double.NaN,
        12.706,
        4.303,
        3.182,
        2.776,
        2.571,
        2.447,
        2.365,
        2.306,
        2.262,
        2.228,
        2.201,
        2.179,
        2.160,
        2.145,
        2.131,
        2.120,
        2.110,
        2.101,
        2.093,
        2.086
    };

    /**
     * A mean with its 95 % interval.
     *
     * @param mean the geometric mean
     */
    public record Interval(double mean, double low, double high) {
        /** The geometric mean of paired ratios, by Student's t distribution over their logarithms. */
        public static Interval ofRatios(double[] ratios) {
            int n = ratios.length;
            double mean = Arrays.stream(ratios).map(Math::log).average().orElse(Double.NaN);
            double squares = Arrays.stream(ratios)
                    .map(r -> (Math.log(r) - mean) * (Math.log(r) - mean))
                    .sum();
            double half = n < 2 ? Double.NaN : T[Math.min(n - 1, T.length - 1)] * Math.sqrt(squares / (n - 1) / n);
            return new Interval(Math.exp(mean), Math.exp(mean - half), Math.exp(mean + half));
        }
    }

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
