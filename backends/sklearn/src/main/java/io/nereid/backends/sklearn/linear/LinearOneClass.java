// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.linear;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.estimator.OutlierDetector;

/** {@code SGDOneClassSVM}: a linear one-class support vector machine. Immutable. */
public final class LinearOneClass extends OutlierDetector {
    private final double[] weights;

    private LinearOneClass(EstimatorAttributes f, double[] weights) {
        super(f.type(), weights.length, f.number("offset_"));
        this.weights = weights;
    }

    public static LinearOneClass of(EstimatorAttributes f) {
        return new LinearOneClass(f, f.doubles("coef_"));
    }

    @Override
    public boolean quick() {
        return true;
    }

    @Override
    protected double[] scores(DataTable table) {
        double[] x = table.finite(type());
        double[] scores = new double[table.rows()];
        for (int r = 0; r < scores.length; r++) {
            scores[r] = MatrixOps.dot(x, r * weights.length, weights);
        }
        return scores;
    }
}
