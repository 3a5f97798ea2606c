// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.base.ServingException;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Rows and columns of numbers, row by row, and texts where there are some; a text's number is not a number. Steps never
 * change a table they were given. Confined to one run.
 *
 * @param rows how many rows
 * @param columns how many columns
 * @param values the numbers
 * @param texts the texts, null where there is a number; null when there is no text at all
 */
record Table(
        int rows, int columns, double[] values, @Nullable String @Nullable [] texts) {
    Table(int rows, int columns, double[] values) {
        this(rows, columns, values, null);
    }

    /** An empty table to be filled. */
    static Table of(int rows, int columns) {
        long cells = (long) rows * columns;
        if (cells > 1 << 28) {
            throw ServingException.invalidArgument(
                    "a table of " + rows + " rows and " + columns
                            + " columns is too large (expected: at most 2^28 cells)",
                    "send fewer rows in a request");
        }
        return new Table(rows, columns, new double[(int) cells]);
    }

    double at(int row, int column) {
        return values[row * columns + column];
    }

    @Nullable String text(int row, int column) {
        return texts == null ? null : texts[row * columns + column];
    }

    /** The numbers, all of them numbers, as most estimators want them. */
    double[] finite(String who) {
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

    /** The numbers, or NaN. */
    double[] numbers(String who) {
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

    /** Some of the columns. */
    Table select(int[] wanted) {
        boolean all = wanted.length == columns;
        for (int i = 0; all && i < columns; i++) {
            all = wanted[i] == i;
        }
        if (all) {
            return this;
        }
        double[] to = new double[rows * wanted.length];
        String[] toTexts = null;
        int at = 0;
        for (int r = 0; r < rows; r++) {
            for (int c : wanted) {
                to[at] = at(r, c);
                String text = text(r, c);
                if (text != null) {
                    toTexts = toTexts == null ? new String[to.length] : toTexts;
                    toTexts[at] = text;
                }
                at++;
            }
        }
        return new Table(rows, wanted.length, to, toTexts);
    }

    /** Tables of as many rows beside each other. */
    static Table beside(int rows, List<Table> parts) {
        if (parts.size() == 1) {
            return parts.get(0);
        }
        int columns = 0;
        boolean texts = false;
        for (Table part : parts) {
            columns += part.columns;
            texts |= part.texts != null;
        }
        Table whole = of(rows, columns);
        String[] allTexts = texts ? new String[rows * columns] : null;
        int from = 0;
        for (Table part : parts) {
            for (int r = 0; r < rows; r++) {
                System.arraycopy(part.values, r * part.columns, whole.values, r * columns + from, part.columns);
                if (allTexts != null && part.texts != null) {
                    System.arraycopy(part.texts, r * part.columns, allTexts, r * columns + from, part.columns);
                }
            }
            from += part.columns;
        }
        return new Table(rows, columns, whole.values, allTexts);
    }

    /** One column of the same rows. */
    static Table column(double[] values) {
        return new Table(values.length, 1, values);
    }
}
