// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.dummy;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.Regressor;

/** {@code DummyClassifier} and {@code DummyRegressor}: a constant prediction that ignores the input. Stateless. */
public final class DummyEstimators {
    private DummyEstimators() {}

    public static Estimator classifier(EstimatorAttributes f) {
        ClassLabels labels = ClassLabels.of(f.array("classes_"));
        double[] priors = f.doubles(labels.count(), "class_prior_");
        String strategy = f.text("_strategy", f.text("strategy", "prior"));
        if (!strategy.equals("prior") && !strategy.equals("most_frequent")) {
            throw f.unsupported("strategy");
        }
        int best = 0;
        for (int c = 1; c < priors.length; c++) {
            best = priors[c] > priors[best] ? c : best;
        }
        double[] answer = priors;
        if (strategy.equals("most_frequent")) {
            answer = new double[priors.length];
            answer[best] = 1;
        }
        double[] always = answer;
        return new Classifier(f.type(), -1, labels) {
            @Override
            public boolean hasProba() {
                return true;
            }

            @Override
            public DataTable proba(DataTable table) {
                DataTable result = DataTable.of(table.rows(), always.length);
                for (int r = 0; r < table.rows(); r++) {
                    System.arraycopy(always, 0, result.values(), r * always.length, always.length);
                }
                return result;
            }
        };
    }

    public static Estimator regressor(EstimatorAttributes f) {
        double[] constant = f.doubles("constant_");
        return new Regressor(f.type(), -1, constant.length == 1 ? 0 : constant.length) {
            @Override
            public DataTable predict(DataTable table) {
                DataTable result = DataTable.of(table.rows(), constant.length);
                for (int i = 0; i < result.values().length; i++) {
                    result.values()[i] = constant[i % constant.length];
                }
                return result;
            }
        };
    }
}
