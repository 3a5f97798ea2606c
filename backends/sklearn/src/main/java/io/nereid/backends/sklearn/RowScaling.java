// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

/** {@code Normalizer}: divides each row by its norm. Immutable. */
final class RowScaling extends Transformer {
    private final String norm;

    RowScaling(String type, int features, String norm) {
        super(type, features, features);
        this.norm = norm;
    }

    static RowScaling of(Fields f) {
        String norm = f.text("norm", "l2");
        if (!norm.equals("l1") && !norm.equals("l2") && !norm.equals("max")) {
            throw f.unsupported("norm");
        }
        return new RowScaling(f.type(), f.features(), norm);
    }

    @Override
    boolean keepsWidth() {
        return true;
    }

    @Override
    boolean quick() {
        return true;
    }

    @Override
    Table transform(Table table) {
        double[] x = table.finite(type());
        Table result = Table.of(table.rows(), table.columns());
        divide(x, table.columns(), norm, result.values());
        return result;
    }

    /** Writes the normalised rows of {@code x} to {@code y}, which may be the same array; a row of zeros stays. */
    static void divide(double[] x, int columns, String norm, double[] y) {
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
