// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.decomposition;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;
import org.jspecify.annotations.Nullable;

/**
 * {@code FastICA}, {@code FactorAnalysis}, {@code SparsePCA}, random projections and others that multiply a row, perhaps
 * centred, by a matrix. The matrix is computed when the model is loaded. Immutable.
 */
public final class ComponentProjection extends Transformer {
    private final double @Nullable [] mean;
    /** By component, its weights. */
    private final DenseMatrix weights;

    private ComponentProjection(EstimatorAttributes f, double @Nullable [] mean, DenseMatrix weights) {
        super(f.type(), weights.columns(), weights.rows());
        this.mean = mean;
        this.weights = weights;
    }

    /** A product with the components alone: random projections, {@code NeighborhoodComponentsAnalysis}. */
    public static ComponentProjection plain(EstimatorAttributes f) {
        return new ComponentProjection(f, null, DenseMatrix.of(f, -1, -1, "components_"));
    }

    /** {@code FastICA}, which has a mean when it whitens. */
    public static ComponentProjection independent(EstimatorAttributes f) {
        DenseMatrix components = DenseMatrix.of(f, -1, -1, "components_");
        return new ComponentProjection(f, f.optional(components.columns(), "mean_"), components);
    }

    /** {@code FactorAnalysis}: the expected mean of the latent variables (Bishop, 12.66). */
    public static ComponentProjection factors(EstimatorAttributes f) {
        DenseMatrix components = DenseMatrix.of(f, -1, -1, "components_");
        int columns = components.columns();
        double[] noise = f.doubles(columns, "noise_variance_");
        double[] scaled = components.values().clone();
        for (int i = 0; i < scaled.length; i++) {
            scaled[i] /= noise[i % columns];
        }
        DenseMatrix divided = DenseMatrix.over(components.rows(), columns, scaled);
        DenseMatrix inverse = gram(divided, components, 1).inverse();
        return new ComponentProjection(f, f.doubles(columns, "mean_"), product(inverse.transposed(), divided));
    }

    /** {@code SparsePCA} and {@code MiniBatchSparsePCA}: ridge regression of a row on the components. */
    public static ComponentProjection sparse(EstimatorAttributes f) {
        DenseMatrix components = DenseMatrix.of(f, -1, -1, "components_");
        DenseMatrix inverse =
                gram(components, components, f.number("ridge_alpha", 0.01)).inverse();
        return new ComponentProjection(f, f.doubles(components.columns(), "mean_"), product(inverse, components));
    }

    /** The products of the rows of two matrices, with a number added to the diagonal. */
    private static DenseMatrix gram(DenseMatrix a, DenseMatrix b, double diagonal) {
        int n = a.rows();
        double[] to = new double[n * n];
        for (int i = 0; i < n; i++) {
            b.product(a.values(), i * a.columns(), to, i * n);
            to[i * n + i] += diagonal;
        }
        return DenseMatrix.over(n, n, to);
    }

    private static DenseMatrix product(DenseMatrix a, DenseMatrix b) {
        DenseMatrix columns = b.transposed();
        double[] to = new double[a.rows() * b.columns()];
        for (int i = 0; i < a.rows(); i++) {
            columns.product(a.values(), i * a.columns(), to, i * b.columns());
        }
        return DenseMatrix.over(a.rows(), b.columns(), to);
    }

    @Override
    public boolean quick() {
        return weights.values().length < 4096;
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        int columns = weights.columns();
        DataTable result = DataTable.of(table.rows(), weights.rows());
        double[] row = new double[columns];
        for (int r = 0; r < table.rows(); r++) {
            for (int i = 0; i < columns; i++) {
                row[i] = x[r * columns + i] - (mean == null ? 0 : mean[i]);
            }
            weights.product(row, 0, result.values(), r * weights.rows());
        }
        return result;
    }
}
