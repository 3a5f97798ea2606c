// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.estimator;

import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;

/** A matrix of numbers in one array, row by row: samples, centres, weights. Immutable. */
public final class DenseMatrix {
    private final int rows;
    private final int columns;
    private final double[] values;

    private DenseMatrix(int rows, int columns, double[] values) {
        this.rows = rows;
        this.columns = columns;
        this.values = values;
    }

    /** A matrix over {@code values}, which are not copied. */
    public static DenseMatrix over(int rows, int columns, double[] values) {
        if ((long) rows * columns != values.length) {
            throw UnsupportedModel.corrupt(
                    "a matrix of " + rows + " x " + columns + " has " + values.length + " values");
        }
        return new DenseMatrix(rows, columns, values);
    }

    /**
     * An attribute of one or two dimensions; one dimension is a single row.
     *
     * @param rows the expected number of rows; -1 accepts any but 0
     * @param columns likewise
     */
    public static DenseMatrix of(EstimatorAttributes f, int rows, int columns, String... names) {
        NdArray a = f.array(names);
        if (a.rank() != 1 && a.rank() != 2) {
            throw UnsupportedModel.unsupported(
                    f.path() + " has an array of " + a.rank() + " dimensions in '" + names[0] + "' (expected: 2)");
        }
        int height = a.rank() == 1 ? 1 : a.dim(0);
        int width = a.rank() == 1 ? a.dim(0) : a.dim(1);
        if ((rows >= 0 ? height != rows : height == 0) || (columns >= 0 ? width != columns : width == 0)) {
            throw UnsupportedModel.corrupt(f.path() + " has a matrix of " + height + " x " + width + " in '" + names[0]
                    + "' (expected: " + (rows < 0 ? "any" : "" + rows) + " x " + (columns < 0 ? "any" : "" + columns)
                    + ")");
        }
        return new DenseMatrix(height, width, a.doubles());
    }

    /** An attribute of targets, one per row and column; one dimension is a single column. */
    public static DenseMatrix targets(EstimatorAttributes f, int rows, String... names) {
        NdArray a = f.array(names);
        return a.rank() == 1 && a.count() == rows ? new DenseMatrix(rows, 1, a.doubles()) : of(f, rows, -1, names);
    }

    public int rows() {
        return rows;
    }

    public int columns() {
        return columns;
    }

    public double at(int row, int column) {
        return values[row * columns + column];
    }

    /** The elements, row by row; the caller must not change them. */
    public double[] values() {
        return values;
    }

    public DenseMatrix transposed() {
        double[] to = new double[values.length];
        for (int r = 0; r < rows; r++) {
            for (int c = 0; c < columns; c++) {
                to[c * rows + r] = values[r * columns + c];
            }
        }
        return new DenseMatrix(columns, rows, to);
    }

    /** The dot product of a row with the slice of {@code x} at {@code from}. */
    public double dot(int row, double[] x, int from) {
        int at = row * columns;
        double sum = 0;
        for (int i = 0; i < columns; i++) {
            sum += values[at + i] * x[from + i];
        }
        return sum;
    }

    /** The squared Euclidean distance between a row and the slice of {@code x} at {@code from}. */
    public double squaredDistance(int row, double[] x, int from) {
        int at = row * columns;
        double sum = 0;
        for (int i = 0; i < columns; i++) {
            double d = x[from + i] - values[at + i];
            sum += d * d;
        }
        return sum;
    }

    /** The row nearest to the slice of {@code x} at {@code from}, the first of equals. */
    public int nearest(double[] x, int from) {
        int best = 0;
        double least = Double.POSITIVE_INFINITY;
        for (int r = 0; r < rows; r++) {
            double d = squaredDistance(r, x, from);
            if (d < least) {
                least = d;
                best = r;
            }
        }
        return best;
    }

    /** Writes the dot product of each row with the slice of {@code x} at {@code from} to {@code to}. */
    public void product(double[] x, int from, double[] to, int toFrom) {
        for (int r = 0; r < rows; r++) {
            to[toFrom + r] = dot(r, x, from);
        }
    }

    /**
     * The inverse of a square matrix, by Gauss-Jordan elimination with the greatest pivot of each column.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a matrix without one
     */
    public DenseMatrix inverse() {
        int n = rows;
        double[] a = values.clone();
        double[] b = new double[n * n];
        for (int i = 0; i < n; i++) {
            b[i * n + i] = 1;
        }
        for (int c = 0; c < n; c++) {
            int best = c;
            for (int r = c + 1; r < n; r++) {
                best = Math.abs(a[r * n + c]) > Math.abs(a[best * n + c]) ? r : best;
            }
            double pivot = a[best * n + c];
            if (!(Math.abs(pivot) > 1e-300)) {
                throw UnsupportedModel.unsupported(
                        "a matrix of " + n + " x " + n + " has no inverse (expected: independent rows)");
            }
            for (int i = 0; i < n; i++) {
                double keptA = a[best * n + i];
                double keptB = b[best * n + i];
                a[best * n + i] = a[c * n + i];
                b[best * n + i] = b[c * n + i];
                a[c * n + i] = keptA / pivot;
                b[c * n + i] = keptB / pivot;
            }
            for (int r = 0; r < n; r++) {
                double factor = a[r * n + c];
                for (int i = 0; r != c && factor != 0 && i < n; i++) {
                    a[r * n + i] -= factor * a[c * n + i];
                    b[r * n + i] -= factor * b[c * n + i];
                }
            }
        }
        return new DenseMatrix(n, n, b);
    }
}
