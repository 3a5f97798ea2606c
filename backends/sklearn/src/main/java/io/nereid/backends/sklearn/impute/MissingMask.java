// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.impute;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.pickle.PythonValues;
import org.jspecify.annotations.Nullable;

/**
 * What counts as a missing value, by the parameter {@code missing_values}. Immutable.
 *
 * @param text the text that does; null when it is a number
 * @param number the number that does, possibly NaN
 */
record MissingMask(@Nullable String text, double number) {
    static MissingMask of(EstimatorAttributes f) {
        Object missing = f.any("missing_values");
        return missing instanceof String s
                ? new MissingMask(s, Double.NaN)
                : new MissingMask(null, missing == null ? Double.NaN : PythonValues.number(missing));
    }

    boolean missing(double value, @Nullable String cell) {
        if (text != null) {
            return text.equals(cell);
        }
        return cell == null && (Double.isNaN(number) ? Double.isNaN(value) : value == number);
    }

    /** The columns of 0 and 1 that an imputer adds for some of a table's columns. */
    DataTable indicator(DataTable table, int[] columns) {
        DataTable result = DataTable.of(table.rows(), columns.length);
        for (int r = 0; r < table.rows(); r++) {
            for (int i = 0; i < columns.length; i++) {
                boolean hole = missing(table.at(r, columns[i]), table.text(r, columns[i]));
                result.values()[r * columns.length + i] = hole ? 1 : 0;
            }
        }
        return result;
    }

    /** The columns for which an imputer adds indicators; none when it adds none. */
    static int[] indicated(EstimatorAttributes f) {
        return f.flag("add_indicator", false)
                ? new EstimatorAttributes(f.object("indicator_"))
                        .array("features_")
                        .ints()
                : new int[0];
    }
}
