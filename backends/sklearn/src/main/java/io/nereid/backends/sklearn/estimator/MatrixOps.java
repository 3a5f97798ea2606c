// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.estimator;

import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.List;

/** Conversions and products of matrices that estimators share. Stateless. */
public final class MatrixOps {
    private MatrixOps() {}

    public static int[] ints(List<Integer> list) {
        return list.stream().mapToInt(Integer::intValue).toArray();
    }

    /** A 2-d array as {@code [rows][columns]}; a 1-d array is a single row. */
    static double[][] rows(NdArray a) {
        if (a.rank() == 1) {
            return new double[][] {a.doubles()};
        }
        if (a.rank() != 2) {
            throw UnsupportedModel.unsupported("an array has " + a.rank() + " dimensions (expected: 2)");
        }
        double[] all = a.doubles();
        double[][] rows = new double[a.dim(0)][a.dim(1)];
        for (int r = 0; r < rows.length; r++) {
            System.arraycopy(all, r * a.dim(1), rows[r], 0, a.dim(1));
        }
        return rows;
    }

    /** An attribute as {@code [rows][columns]}, after a check of both sizes; -1 accepts any. */
    public static double[][] rows(EstimatorAttributes f, int rows, int columns, String... names) {
        NdArray a = f.array(names);
        double[][] matrix = rows(a);
        int width = a.rank() == 1 ? a.dim(0) : a.dim(1);
        if ((rows >= 0 && matrix.length != rows) || (columns >= 0 && width != columns)) {
            throw UnsupportedModel.corrupt(f.path() + " has a matrix of " + matrix.length + " x " + width + " in '"
                    + names[0]
                    + "' (expected: " + (rows < 0 ? "any" : "" + rows) + " x " + (columns < 0 ? "any" : "" + columns)
                    + ")");
        }
        return matrix;
    }

    /** The dot product of {@code w} with the slice of {@code x} at {@code from}. */
    public static double dot(double[] x, int from, double[] w) {
        double sum = 0;
        for (int i = 0; i < w.length; i++) {
            sum += x[from + i] * w[i];
        }
        return sum;
    }

    /**
     * Returns {@code places} after a check that each is a column index; {@code columns} is -1 when their number is
     * unknown.
     */
    public static int[] within(int[] places, int columns) {
        for (int place : places) {
            if (place < 0 || (columns >= 0 && place >= columns)) {
                throw UnsupportedModel.corrupt("it uses column " + place + " (expected: 0 to " + (columns - 1) + ")");
            }
        }
        return places;
    }
}
