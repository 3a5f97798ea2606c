// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.kernel;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.Arrays;

/**
 * {@code PolynomialCountSketch}: the circular convolution of count sketches of the row, one for each degree (Pham and Pagh,
 * Fast and Scalable Polynomial Kernels via Explicit Feature Maps, 2013). A sketch has few numbers that are not zero, so
 * that it is convolved directly, without a Fourier transform. Immutable.
 */
public final class PolynomialSketch extends Transformer {
    private final int degree;
    /** By degree and column, where the column counts in the sketch. */
    private final int[] places;
    /** Likewise its factor. */
    private final double[] factors;
    /** The number of columns of a sketch, with the constant one where there is one. */
    private final int columns;

    private final double added;
    private final int width;

    private PolynomialSketch(EstimatorAttributes f, int width, int degree, NdArray places, double added) {
        super(f.type(), places.dim(1) - (added == 0 ? 0 : 1), width);
        this.width = width;
        this.degree = degree;
        this.columns = places.dim(1);
        this.added = Math.sqrt(added);
        this.places = places.ints();
        factors = f.doubles(degree * columns, "bitHash_");
        double gamma = Math.sqrt(f.number("gamma", 1));
        for (int i = 0; i < factors.length; i++) {
            boolean constant = added != 0 && i % columns == columns - 1;
            factors[i] *= constant ? 1 : gamma;
            if (this.places[i] < 0 || this.places[i] >= width) {
                throw UnsupportedModel.corrupt(
                        f.path() + " has index " + this.places[i] + " (expected: 0 to " + (width - 1) + ")");
            }
        }
    }

    public static PolynomialSketch of(EstimatorAttributes f) {
        NdArray places = f.array("indexHash_");
        int degree = f.integer("degree", 2);
        int width = f.integer("n_components", 100);
        double added = f.number("coef0", 0);
        if (places.rank() != 2
                || places.dim(0) != degree
                || degree < 1
                || width < 1
                || width > 1 << 24
                || places.dim(1) < (added == 0 ? 1 : 2)) {
            throw UnsupportedModel.corrupt(f.path() + " has no indexes for each of " + degree + " degrees");
        }
        return new PolynomialSketch(f, width, degree, places, added);
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        int given = table.columns();
        DataTable result = DataTable.of(table.rows(), width);
        double[] now = new double[width];
        double[] next = new double[width];
        for (int r = 0; r < table.rows(); r++) {
            Arrays.fill(now, 0);
            now[0] = 1;
            for (int d = 0; d < degree; d++) {
                Arrays.fill(next, 0);
                for (int j = 0; j < columns; j++) {
                    double v = (j < given ? x[r * given + j] : added) * factors[d * columns + j];
                    int shift = places[d * columns + j];
                    for (int i = 0; v != 0 && i < width; i++) {
                        int to = i + shift;
                        next[to < width ? to : to - width] += v * now[i];
                    }
                }
                double[] swapped = now;
                now = next;
                next = swapped;
            }
            System.arraycopy(now, 0, result.values(), r * width, width);
        }
        return result;
    }
}
