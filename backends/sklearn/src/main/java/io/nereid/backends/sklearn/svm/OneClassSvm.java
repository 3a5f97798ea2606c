// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.svm;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.estimator.OutlierDetector;

/** {@code OneClassSVM}: a support vector machine that separates the training rows from the origin. Immutable. */
public final class OneClassSvm extends OutlierDetector {
    private final SupportVectors vectors;
    private final double[] coefficients;

    private OneClassSvm(EstimatorAttributes f, SupportVectors vectors) {
        super(f.type(), vectors.features(), -f.doubles(1, "_intercept_", "intercept_")[0]);
        this.vectors = vectors;
        this.coefficients = f.doubles(vectors.count(), "_dual_coef_", "dual_coef_");
    }

    public static OneClassSvm of(EstimatorAttributes f) {
        return new OneClassSvm(f, new SupportVectors(f));
    }

    /** {@inheritDoc} libsvm counts a row on the border as an outlier. */
    @Override
    protected boolean normal(double decision) {
        return decision > 0;
    }

    @Override
    protected double[] scores(DataTable table) {
        double[] x = table.finite(type());
        double[] scores = new double[table.rows()];
        double[] k = new double[vectors.count()];
        for (int r = 0; r < scores.length; r++) {
            vectors.products(x, r * table.columns(), k);
            scores[r] = MatrixOps.dot(k, 0, coefficients);
        }
        return scores;
    }
}
