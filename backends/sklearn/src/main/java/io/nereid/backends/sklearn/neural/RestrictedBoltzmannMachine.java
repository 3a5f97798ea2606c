// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.neural;

import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.DenseMatrix;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Transformer;

/** {@code BernoulliRBM}: the probability of each hidden unit. Immutable. */
public final class RestrictedBoltzmannMachine extends Transformer {
    private final DenseMatrix weights;
    private final double[] biases;

    private RestrictedBoltzmannMachine(EstimatorAttributes f, DenseMatrix weights) {
        super(f.type(), weights.columns(), weights.rows());
        this.weights = weights;
        this.biases = f.doubles(weights.rows(), "intercept_hidden_");
    }

    public static RestrictedBoltzmannMachine of(EstimatorAttributes f) {
        return new RestrictedBoltzmannMachine(f, DenseMatrix.of(f, -1, -1, "components_"));
    }

    @Override
    public boolean quick() {
        return weights.values().length < 4096;
    }

    @Override
    public DataTable transform(DataTable table) {
        double[] x = table.finite(type());
        DataTable result = DataTable.of(table.rows(), weights.rows());
        for (int r = 0; r < table.rows(); r++) {
            for (int i = 0; i < weights.rows(); i++) {
                result.values()[r * weights.rows() + i] =
                        Classifier.sigmoid(weights.dot(i, x, r * weights.columns()) + biases[i]);
            }
        }
        return result;
    }
}
