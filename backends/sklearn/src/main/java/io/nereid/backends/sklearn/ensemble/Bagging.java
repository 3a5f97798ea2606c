// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.ensemble;

import io.nereid.backends.sklearn.compose.Pipeline;
import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MatrixOps;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Regressor;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.preprocessing.FeatureSelector;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * {@code BaggingClassifier} and {@code BaggingRegressor}: the mean of members fitted to samples of rows and columns.
 * Stateless.
 */
public final class Bagging {
    private Bagging() {}

    /** The members, each behind a selection of the columns that it was fitted to. */
    private static List<Estimator> bag(EstimatorAttributes f, Estimator.Factory factory) {
        List<Estimator> members = EnsembleMembers.members(f, factory);
        List<Object> columns = f.list("estimators_features_");
        List<Estimator> bag = new ArrayList<>();
        for (int m = 0; m < members.size(); m++) {
            Estimator member = members.get(m);
            if (m < columns.size() && columns.get(m) instanceof NdArray a) {
                bag.add(Pipeline.of(
                        f.type(),
                        List.of(
                                new FeatureSelector(f.type(), f.features(), MatrixOps.within(a.ints(), f.features())),
                                member)));
            } else {
                bag.add(member);
            }
        }
        return bag;
    }

    public static Estimator regressor(EstimatorAttributes f, Estimator.Factory factory) {
        List<Estimator> members = bag(f, factory);
        EnsembleMembers.require(f, members, PredictMethod.PREDICT, 0);
        double[] weights = new double[members.size()];
        Arrays.fill(weights, 1.0 / weights.length);
        return new Regressor(f.type(), f.features(), 0) {
            @Override
            public DataTable predict(DataTable table) {
                return EnsembleMembers.mean(members, weights, PredictMethod.PREDICT, table);
            }
        };
    }

    public static Estimator classifier(EstimatorAttributes f, Estimator.Factory factory) {
        List<Estimator> members = bag(f, factory);
        ClassLabels labels = ClassLabels.of(f.array("classes_"));
        EnsembleMembers.require(f, members, PredictMethod.PREDICT_PROBA, labels.count());
        double[] weights = new double[members.size()];
        Arrays.fill(weights, 1.0 / weights.length);
        return new Classifier(f.type(), f.features(), labels) {
            @Override
            public boolean hasProba() {
                return true;
            }

            @Override
            public DataTable proba(DataTable table) {
                return EnsembleMembers.mean(members, weights, PredictMethod.PREDICT_PROBA, table);
            }
        };
    }
}
