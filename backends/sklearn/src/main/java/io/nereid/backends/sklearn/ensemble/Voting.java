// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.ensemble;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Regressor;
import io.nereid.backends.sklearn.pickle.PyNone;
import io.nereid.backends.sklearn.pickle.PythonValues;
import java.util.List;

/**
 * {@code VotingClassifier} and {@code VotingRegressor}: the weighted mean or majority of several estimators. Stateless.
 */
public final class Voting {
    private Voting() {}

    /** The weights of the members that were not dropped, normalised to a sum of 1. */
    private static double[] weights(EstimatorAttributes f, int members) {
        double[] weights = new double[members];
        java.util.Arrays.fill(weights, 1);
        if (f.has("weights")) {
            List<Object> given = EstimatorAttributes.asList(f.required("weights"));
            List<Object> named = f.list("estimators");
            int at = 0;
            for (int i = 0; i < given.size() && i < named.size() && at < members; i++) {
                Object estimator = EstimatorAttributes.asList(named.get(i)).get(1);
                if (!"drop".equals(estimator) && estimator != PyNone.NONE) {
                    weights[at++] = PythonValues.number(given.get(i));
                }
            }
        }
        double sum = 0;
        for (double w : weights) {
            sum += w;
        }
        for (int i = 0; i < members; i++) {
            weights[i] /= sum;
        }
        return weights;
    }

    public static Estimator regressor(EstimatorAttributes f, Estimator.Factory factory) {
        List<Estimator> members = EnsembleMembers.members(f, factory);
        double[] weights = weights(f, members.size());
        EnsembleMembers.require(f, members, PredictMethod.PREDICT, 0);
        return new Regressor(f.type(), EnsembleMembers.features(f, members), 0) {
            @Override
            public DataTable predict(DataTable table) {
                return EnsembleMembers.mean(members, weights, PredictMethod.PREDICT, table);
            }
        };
    }

    public static Estimator classifier(EstimatorAttributes f, Estimator.Factory factory) {
        List<Estimator> members = EnsembleMembers.members(f, factory);
        double[] weights = weights(f, members.size());
        boolean soft = f.text("voting", "hard").equals("soft");
        ClassLabels labels = ClassLabels.of(f.array("classes_"));
        EnsembleMembers.require(
                f, members, soft ? PredictMethod.PREDICT_PROBA : PredictMethod.PREDICT, soft ? labels.count() : 0);
        return new Classifier(f.type(), EnsembleMembers.features(f, members), labels) {
            @Override
            public boolean hasProba() {
                return soft;
            }

            @Override
            public DataTable proba(DataTable table) {
                return EnsembleMembers.mean(members, weights, PredictMethod.PREDICT_PROBA, table);
            }

            @Override
            public int[] classes(DataTable table) {
                if (soft) {
                    return ClassLabels.greatest(proba(table));
                }
                DataTable votes = DataTable.of(table.rows(), labels.count());
                for (int m = 0; m < members.size(); m++) {
                    double[] predicted =
                            members.get(m).checked(PredictMethod.PREDICT, table).values();
                    for (int r = 0; r < predicted.length; r++) {
                        int place = EnsembleMembers.place(predicted[r], labels.count());
                        votes.values()[r * labels.count() + place] += weights[m];
                    }
                }
                return ClassLabels.greatest(votes);
            }
        };
    }
}
