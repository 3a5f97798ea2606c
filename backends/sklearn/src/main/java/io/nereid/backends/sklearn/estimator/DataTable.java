// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.estimator;

import io.nereid.base.ServingException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A table of numbers and texts, the input and result of every estimator. Cells lie row by row; a cell with a text has
 * NaN as its number. Estimators must not modify a table that they receive, because several may share it. Confined to
 * one run.
 *
 * @param rows number of rows
 * @param columns number of columns
 * @param values the numbers, {@code rows * columns}
 * @param texts the texts, null in cells that hold a number; null when no cell holds a text
 */
public record DataTable(
        int rows, int columns, double[] values, @Nullable String @Nullable [] texts) {
    DataTable(int rows, int columns, double[] values) {
        this(rows, columns, values, null);
    }

    /** A table of zeros, to be filled by the caller. */
    public static DataTable of(int rows, int columns) {
        long cells = (long) rows * columns;
        if (cells > 1 << 28) {
            throw ServingException.invalidArgument(
                    "a table of " + rows + " rows and " + columns
                            + " columns is too large (expected: at most 2^28 cells)",
                    "send fewer rows in a request");
        }
        return new DataTable(rows, columns, new double[(int) cells]);
    }

    public double at(int row, int column) {
        return values[row * columns + column];
    }

    public @Nullable String text(int row, int column) {
        return texts == null ? null : texts[row * columns + column];
    }

    /**
     * The numbers, for estimators that do not accept missing values.
     *
     * @param who the estimator, for messages
     * @throws ServingException INVALID_ARGUMENT when a cell is NaN, infinite or a text
     */
    public double[] finite(String who) {
        double[] x = numbers(who);
        for (double v : x) {
            if (!(Math.abs(v) <= Double.MAX_VALUE)) {
                throw ServingException.invalidArgument(
                        who + " was given " + (Double.isNaN(v) ? "NaN" : "an infinite value") + " (expected: numbers)",
                        "put a SimpleImputer before it, or send complete rows");
            }
        }
        return x;
    }

    /**
     * The numbers, possibly NaN or infinite.
     *
     * @param who the estimator, for messages
     * @throws ServingException INVALID_ARGUMENT when a cell is a text
     */
    public double[] numbers(String who) {
        if (texts != null) {
            for (String text : texts) {
                if (text != null) {
                    throw ServingException.invalidArgument(who + " was given the text '"
                            + (text.length() > 40 ? text.substring(0, 40) + "…" : text) + "' (expected: numbers)");
                }
            }
        }
        return values;
    }

    /** A table of the selected columns, in the given order; this table when these are all columns. */
    public DataTable select(int[] selected) {
        boolean all = selected.length == columns;
        for (int i = 0; all && i < columns; i++) {
            all = selected[i] == i;
        }
        if (all) {
            return this;
        }
        double[] to = new double[rows * selected.length];
        String[] toTexts = null;
        int at = 0;
        for (int r = 0; r < rows; r++) {
            for (int c : selected) {
                to[at] = at(r, c);
                String text = text(r, c);
                if (text != null) {
                    toTexts = toTexts == null ? new String[to.length] : toTexts;
                    toTexts[at] = text;
                }
                at++;
            }
        }
        return new DataTable(rows, selected.length, to, toTexts);
    }

    /** Concatenates tables of the same number of rows by columns ({@code hstack}). */
    public static DataTable beside(int rows, List<DataTable> parts) {
        if (parts.size() == 1) {
            return parts.get(0);
        }
        int columns = 0;
        boolean texts = false;
        for (DataTable part : parts) {
            columns += part.columns;
            texts |= part.texts != null;
        }
        DataTable whole = of(rows, columns);
        String[] allTexts = texts ? new String[rows * columns] : null;
        int from = 0;
        for (DataTable part : parts) {
            for (int r = 0; r < rows; r++) {
                System.arraycopy(part.values, r * part.columns, whole.values, r * columns + from, part.columns);
                if (allTexts != null && part.texts != null) {
                    System.arraycopy(part.texts, r * part.columns, allTexts, r * columns + from, part.columns);
                }
            }
            from += part.columns;
        }
        return new DataTable(rows, columns, whole.values, allTexts);
    }

    /** A table of one column. */
    public static DataTable column(double[] values) {
        return new DataTable(values.length, 1, values);
    }
}
