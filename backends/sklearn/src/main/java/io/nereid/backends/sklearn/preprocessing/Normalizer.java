// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.preprocessing;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;

/** {@code Normalizer}: divides each row by its norm. Immutable. */
public final class Normalizer extends Transformer {
    private final String norm;

    Normalizer(String type, int features, String norm) {
        super(type, features, features);
        this.norm = norm;
    }

    public static Normalizer of(EstimatorAttributes f) {
        String norm = f.text("norm", "l2");
        if (!norm.equals("l1") && !norm.equals("l2") && !norm.equals("max")) {
            throw f.unsupported("norm");
        }
        return new Normalizer(f.type(), f.features(), norm);
    }

    @Override
    public boolean keepsWidth() {
        return true;
    }

    @Override
    public boolean quick() {
        return true;
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        DataTable result = DataTable.of(table.rows(), table.columns());
        divide(x, table.columns(), norm, result.values());
        return result;
    }

    /** Writes the normalised rows of {@code x} to {@code y}, which may be the same array; a row of zeros stays. */
    public static void divide(double[] x, int columns, String norm, double[] y) {
        for (int from = 0; columns > 0 && from < x.length; from += columns) {
            double length = 0;
            for (int c = from; c < from + columns; c++) {
                double v = Math.abs(x[c]);
                length = norm.equals("l2") ? length + v * v : norm.equals("l1") ? length + v : Math.max(length, v);
            }
            length = norm.equals("l2") ? Math.sqrt(length) : length;
            for (int c = from; c < from + columns; c++) {
                y[c] = length == 0 ? x[c] : x[c] / length;
            }
        }
    }
}
