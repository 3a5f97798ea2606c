// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.kernel;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.base.ServingException;

/**
 * {@code RBFSampler} and {@code SkewedChi2Sampler}: cosines of random projections, whose products approximate a kernel.
 * Immutable.
 */
public final class RandomFeatures extends Transformer {
    /** By component, its random direction. */
    private final DenseMatrix directions;

    private final double[] offsets;
    /** What is added before the logarithm is taken; NaN when none is. */
    private final double skewedness;

    private RandomFeatures(EstimatorAttributes f, DenseMatrix directions, double skewedness) {
        super(f.type(), directions.columns(), directions.rows());
        this.directions = directions;
        this.offsets = f.doubles(directions.rows(), "random_offset_");
        this.skewedness = skewedness;
    }

    public static RandomFeatures rbf(EstimatorAttributes f) {
        return new RandomFeatures(
                f, DenseMatrix.of(f, -1, -1, "random_weights_").transposed(), Double.NaN);
    }

    public static RandomFeatures skewedChiSquared(EstimatorAttributes f) {
        return new RandomFeatures(
                f, DenseMatrix.of(f, -1, -1, "random_weights_").transposed(), f.number("skewedness", 1));
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        int columns = directions.columns();
        int width = directions.rows();
        DataTable result = DataTable.of(table.rows(), width);
        double[] row = new double[columns];
        double scale = Math.sqrt(2.0 / width);
        for (int r = 0; r < table.rows(); r++) {
            System.arraycopy(x, r * columns, row, 0, columns);
            for (int i = 0; !Double.isNaN(skewedness) && i < columns; i++) {
                if (row[i] <= -skewedness) {
                    throw ServingException.invalidArgument(
                            type() + " was given " + row[i] + " (expected: more than " + -skewedness + ")");
                }
                row[i] = Math.log(row[i] + skewedness);
            }
            for (int c = 0; c < width; c++) {
                result.values()[r * width + c] = scale * Math.cos(directions.dot(c, row, 0) + offsets[c]);
            }
        }
        return result;
    }
}
