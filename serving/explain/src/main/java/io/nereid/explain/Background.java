// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain;

import io.nereid.base.ServingException;
import java.util.Arrays;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * Rows that stand for the data a model sees. Immutable.
 *
 * @param rows at least one
 * @param from how many there were before some of them were drawn
 * @param origin where they come from, for the answer
 */
record Background(double[][] rows, int from, String origin) {
    /** Instances that can stand for the data when nothing else is given. */
    static final int ENOUGH = 10;

    /** At most so many rows, drawn without replacement, in their order. */
    static Background of(double[][] rows, int most, String origin, SplittableRandom random) {
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

    /** The refusal of a method that needs a background and has none. */
    static ServingException missing(String method, String why) {
        return ServingException.invalidArgument(
                "method '" + method + "' needs background rows, " + why
                        + " (expected: parameter 'background', or at least " + ENOUGH
                        + " instances, which then stand for the data)",
                "send \"parameters\": {\"background\": [[…], …]} with some tens of rows of training data, or give the"
                        + " explainer a background file");
    }

    /** One row of the medians of instances, missing values left out. */
    static Background median(double[][] instances) {
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

    /** How a column's values lie. */
    record Spread(double least, double most, double deviation, double medianDeviation, boolean whole) {}

    /** How the values of a column lie; null when it has none. */
    @Nullable Spread spread(int column) {
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
