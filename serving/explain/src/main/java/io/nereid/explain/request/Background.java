// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.request;

import io.nereid.base.ServingException;
import java.util.Arrays;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * The background data of an explanation: rows that represent the data that the model is used on. Immutable.
 *
 * @param rows at least one
 * @param from the number of rows before sampling
 * @param origin where the rows come from, for the response
 */
public record Background(double[][] rows, int from, String origin) {
    /** The number of instances from which on they can serve as background data. */
    public static final int ENOUGH = 10;

    /** Samples at most {@code most} rows without replacement and keeps their order (selection sampling). */
    public static Background of(double[][] rows, int most, String origin, SplittableRandom random) {
        if (rows.length <= most) {
            return new Background(rows, rows.length, origin);
        }
        double[][] drawn = new double[most][];
        int at = 0;
        for (int i = 0; i < rows.length; i++) {
            if (random.nextInt(rows.length - i) < most - at) {
                drawn[at++] = rows[i];
            }
        }
        return new Background(drawn, rows.length, origin);
    }

    /** The error of a method that needs background data when there are none. */
    public static ServingException missing(String method, String why) {
        return ServingException.invalidArgument(
                "method '" + method + "' needs background rows, " + why
                        + " (expected: parameter 'background', or at least " + ENOUGH
                        + " instances, which then stand for the data)",
                "send \"parameters\": {\"background\": [[…], …]} with some tens of rows of training data, or give the"
                        + " explainer a background file");
    }

    /** One row with the medians of the instances' features; missing values do not count. */
    public static Background median(double[][] instances) {
        double[] row = new double[instances[0].length];
        for (int c = 0; c < row.length; c++) {
            double[] values = column(instances, c);
            row[c] = values.length == 0 ? Double.NaN : middle(values);
        }
        return new Background(new double[][] {row}, 1, "median of the " + instances.length + " instances");
    }

    private static double middle(double[] sorted) {
        int half = sorted.length / 2;
        return sorted.length % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
    }

    private static double[] column(double[][] rows, int column) {
        double[] values = new double[rows.length];
        int count = 0;
        for (double[] row : rows) {
            if (Double.isFinite(row[column])) {
                values[count++] = row[column];
            }
        }
        values = Arrays.copyOf(values, count);
        Arrays.sort(values);
        return values;
    }

    /** The distribution of a column's values. */
    public record Spread(double least, double most, double deviation, double medianDeviation, boolean whole) {}

    /** The distribution of a column; null when it has no finite values. */
    public @Nullable Spread spread(int column) {
        double[] values = column(rows, column);
        if (values.length == 0) {
            return null;
        }
        double mean = Arrays.stream(values).average().orElse(0);
        double squares = 0;
        boolean whole = true;
        double[] off = new double[values.length];
        double median = middle(values);
        for (int i = 0; i < values.length; i++) {
            squares += (values[i] - mean) * (values[i] - mean);
            whole &= values[i] == Math.rint(values[i]);
            off[i] = Math.abs(values[i] - median);
        }
        Arrays.sort(off);
        return new Spread(values[0], values[values.length - 1], Math.sqrt(squares / values.length), middle(off), whole);
    }
}
