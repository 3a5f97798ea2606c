// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.gaussianprocess;

import io.nereid.backends.sklearn.estimator.DenseMatrix;

/** A covariance function of two rows. Immutable. */
interface Covariance {
    /** The value for the row at {@code from} and a training row. */
    double of(double[] x, int from, DenseMatrix training, int row);

    /** The variance: the value for the row at {@code from} and itself. */
    double variance(double[] x, int from, int columns);

    /** Writes the values for the row at {@code from} and every training row. */
    static void all(Covariance covariance, double[] x, int from, DenseMatrix training, double[] to) {
        for (int i = 0; i < to.length; i++) {
            to[i] = covariance.of(x, from, training, i);
        }
    }
}
