// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.covariance;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.OutlierDetector;

/**
 * {@code EllipticEnvelope}: the score of a row is its negative squared Mahalanobis distance from the robust location of
 * the training rows. Immutable.
 */
public final class EllipticEnvelope extends OutlierDetector {
    private final double[] location;
    /** The precision, the inverse of the covariance. */
    private final DenseMatrix precision;

    private EllipticEnvelope(EstimatorAttributes f, double[] location, DenseMatrix precision) {
        super(f.type(), location.length, f.number("offset_"));
        this.location = location;
        this.precision = precision;
    }

    public static EllipticEnvelope of(EstimatorAttributes f) {
        double[] location = f.doubles("location_");
        int n = location.length;
        if (f.has("precision_")) {
            return new EllipticEnvelope(f, location, DenseMatrix.of(f, n, n, "precision_"));
        }
        return new EllipticEnvelope(
                f, location, DenseMatrix.of(f, n, n, "covariance_").inverse());
    }

    @Override
    protected double[] scores(DataTable table) {
        double[] x = table.finite(type());
        int n = location.length;
        double[] scores = new double[table.rows()];
        double[] centred = new double[n];
        for (int r = 0; r < scores.length; r++) {
            for (int i = 0; i < n; i++) {
                centred[i] = x[r * n + i] - location[i];
            }
            double sum = 0;
            for (int i = 0; i < n; i++) {
                sum += centred[i] * precision.dot(i, centred, 0);
            }
            scores[r] = -sum;
        }
        return scores;
    }
}
