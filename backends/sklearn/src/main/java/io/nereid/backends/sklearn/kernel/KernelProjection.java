// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.kernel;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import org.jspecify.annotations.Nullable;

/**
 * {@code KernelPCA} and {@code Nystroem}: linear combinations of the kernel values with the training rows. Immutable.
 */
public final class KernelProjection extends Transformer {
    private final SampleKernel kernel;
    /** By component, the weight of each training row. */
    private final DenseMatrix weights;

    private final @Nullable KernelCentring centring;

    private KernelProjection(
            EstimatorAttributes f, SampleKernel kernel, DenseMatrix weights, @Nullable KernelCentring centring) {
        super(f.type(), kernel.features(), weights.rows());
        this.kernel = kernel;
        this.weights = weights;
        this.centring = centring;
    }

    public static KernelProjection nystroem(EstimatorAttributes f) {
        SampleKernel kernel = SampleKernel.of(f, DenseMatrix.of(f, -1, -1, "components_"));
        DenseMatrix weights = DenseMatrix.of(f, kernel.count(), kernel.count(), "normalization_");
        return new KernelProjection(f, kernel, weights, null);
    }

    public static KernelProjection pca(EstimatorAttributes f) {
        DenseMatrix samples = DenseMatrix.of(f, -1, -1, "X_fit_");
        SampleKernel kernel = SampleKernel.of(f, "kernel", samples, f.number("gamma_", f.number("gamma", Double.NaN)));
        DenseMatrix vectors = DenseMatrix.of(f, samples.rows(), -1, "eigenvectors_", "alphas_")
                .transposed();
        double[] eigenvalues = f.doubles(vectors.rows(), "eigenvalues_", "lambdas_");
        double[] scaled = vectors.values().clone();
        for (int i = 0; i < scaled.length; i++) {
            double value = eigenvalues[i / samples.rows()];
            scaled[i] = value == 0 ? 0 : scaled[i] / Math.sqrt(value);
        }
        KernelCentring centring = KernelCentring.of(new EstimatorAttributes(f.object("_centerer")));
        if (centring.features() != samples.rows()) {
            throw UnsupportedModel.corrupt(
                    f.path() + " centres " + centring.features() + " kernel values (expected: " + samples.rows() + ")");
        }
        return new KernelProjection(f, kernel, DenseMatrix.over(vectors.rows(), samples.rows(), scaled), centring);
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        DataTable result = DataTable.of(table.rows(), weights.rows());
        double[] k = new double[kernel.count()];
        for (int r = 0; r < table.rows(); r++) {
            kernel.values(x, r * table.columns(), k);
            if (centring != null) {
                centring.centre(k, 0);
            }
            weights.product(k, 0, result.values(), r * weights.rows());
        }
        return result;
    }
}
