// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.kernel;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;

/**
 * {@code KernelPCA} and {@code Nystroem}: linear combinations of the kernel values with the training rows. Immutable.
 */
public final class KernelProjection extends Transformer {
    private final SampleKernel kernel;
    /** By component, the weight of each training row. */
    private final DenseMatrix weights;
    /** By training row, the mean of its kernel values, which are centred; empty when they are not. */
    private final double[] means;

    private final double mean;

    private KernelProjection(
            EstimatorAttributes f, SampleKernel kernel, DenseMatrix weights, double[] means, double mean) {
        super(f.type(), kernel.features(), weights.rows());
        this.kernel = kernel;
        this.weights = weights;
        this.means = means;
        this.mean = mean;
    }

    public static KernelProjection nystroem(EstimatorAttributes f) {
        SampleKernel kernel = SampleKernel.of(f, DenseMatrix.of(f, -1, -1, "components_"));
        DenseMatrix weights = DenseMatrix.of(f, kernel.count(), kernel.count(), "normalization_");
        return new KernelProjection(f, kernel, weights, new double[0], 0);
    }

    public static KernelProjection pca(EstimatorAttributes f) {
        DenseMatrix samples = DenseMatrix.of(f, -1, -1, "X_fit_");
        SampleKernel kernel =
                SampleKernel.of(f, "kernel", samples, f.number("gamma_", f.number("gamma", Double.NaN)));
        DenseMatrix vectors =
                DenseMatrix.of(f, samples.rows(), -1, "eigenvectors_", "alphas_").transposed();
        double[] eigenvalues = f.doubles(vectors.rows(), "eigenvalues_", "lambdas_");
        double[] scaled = vectors.values().clone();
        for (int i = 0; i < scaled.length; i++) {
            double value = eigenvalues[i / samples.rows()];
            scaled[i] = value == 0 ? 0 : scaled[i] / Math.sqrt(value);
        }
        EstimatorAttributes centre = new EstimatorAttributes(f.object("_centerer"));
        return new KernelProjection(
                f,
                kernel,
                DenseMatrix.over(vectors.rows(), samples.rows(), scaled),
                centre.doubles(samples.rows(), "K_fit_rows_"),
                centre.number("K_fit_all_"));
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        DataTable result = DataTable.of(table.rows(), weights.rows());
        double[] k = new double[kernel.count()];
        for (int r = 0; r < table.rows(); r++) {
            kernel.values(x, r * table.columns(), k);
            if (means.length > 0) {
                double own = 0;
                for (double v : k) {
                    own += v;
                }
                own = own / k.length - mean;
                for (int i = 0; i < k.length; i++) {
                    k[i] -= means[i] + own;
                }
            }
            weights.product(k, 0, result.values(), r * weights.rows());
        }
        return result;
    }
}
