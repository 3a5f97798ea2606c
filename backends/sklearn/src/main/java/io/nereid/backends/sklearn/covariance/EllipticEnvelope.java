// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.covariance;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.OutlierDetector;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;

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
        return new EllipticEnvelope(f, location, inverse(f, DenseMatrix.of(f, n, n, "covariance_")));
    }

    /** Gauss-Jordan elimination with the greatest pivot of each column. */
    private static DenseMatrix inverse(EstimatorAttributes f, DenseMatrix matrix) {
        int n = matrix.rows();
        double[] a = matrix.values().clone();
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
                throw UnsupportedModel.unsupported(f.path()
                        + " without a stored precision has a covariance that cannot be inverted (expected:"
                        + " store_precision=True)");
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
        return DenseMatrix.over(n, n, b);
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
