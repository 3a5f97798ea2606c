// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.kernel;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Regressor;

/** {@code KernelRidge}: a weighted sum of the kernel values with the training rows. Immutable. */
public final class KernelRidge extends Regressor {
    private final SampleKernel kernel;
    /** By target, the weight of each training row. */
    private final DenseMatrix weights;

    private KernelRidge(EstimatorAttributes f, SampleKernel kernel, DenseMatrix weights, boolean flat) {
        super(f.type(), kernel.features(), flat ? 0 : weights.rows());
        this.kernel = kernel;
        this.weights = weights;
    }

    public static KernelRidge of(EstimatorAttributes f) {
        SampleKernel kernel = SampleKernel.of(f, DenseMatrix.of(f, -1, -1, "X_fit_"));
        DenseMatrix weights =
                DenseMatrix.targets(f, kernel.count(), "dual_coef_").transposed();
        return new KernelRidge(f, kernel, weights, f.array("dual_coef_").rank() == 1);
    }

    @Override
    public DataTable predict(DataTable table) {
        double[] x = table.finite(type());
        DataTable result = DataTable.of(table.rows(), weights.rows());
        double[] k = new double[kernel.count()];
        for (int r = 0; r < table.rows(); r++) {
            kernel.values(x, r * table.columns(), k);
            weights.product(k, 0, result.values(), r * weights.rows());
        }
        return result;
    }
}
