// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.gaussianprocess;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Regressor;
import java.util.Arrays;

/** {@code GaussianProcessRegressor}: the mean of the process at a row. Immutable. */
public final class GaussianProcessRegressor extends Regressor {
    private final DenseMatrix training;
    private final Covariance covariance;
    /** By target, the weight of each training row. */
    private final DenseMatrix weights;

    private final double[] mean;
    private final double[] scale;

    private GaussianProcessRegressor(EstimatorAttributes f, DenseMatrix training, DenseMatrix weights, boolean flat) {
        super(f.type(), training.columns(), flat ? 0 : weights.rows());
        this.training = training;
        this.weights = weights;
        covariance = CovarianceReader.of(f, training);
        mean = spread(f, "_y_train_mean");
        scale = spread(f, "_y_train_std");
    }

    public static GaussianProcessRegressor of(EstimatorAttributes f) {
        DenseMatrix training = DenseMatrix.of(f, -1, -1, "X_train_");
        DenseMatrix weights = DenseMatrix.targets(f, training.rows(), "alpha_").transposed();
        return new GaussianProcessRegressor(f, training, weights, weights.rows() == 1);
    }

    /** The values by target; the only value where it is common to all. */
    private double[] spread(EstimatorAttributes f, String name) {
        double[] given = f.doubles(name);
        if (given.length != 1) {
            return f.doubles(weights.rows(), name);
        }
        double[] all = new double[weights.rows()];
        Arrays.fill(all, given[0]);
        return all;
    }

    @Override
    public DataTable predict(DataTable table) {
        double[] x = table.finite(type());
        int targets = weights.rows();
        DataTable result = DataTable.of(table.rows(), targets);
        double[] k = new double[training.rows()];
        for (int r = 0; r < table.rows(); r++) {
            Covariance.all(covariance, x, r * table.columns(), training, k);
            for (int t = 0; t < targets; t++) {
                result.values()[r * targets + t] = scale[t] * weights.dot(t, k, 0) + mean[t];
            }
        }
        return result;
    }
}
