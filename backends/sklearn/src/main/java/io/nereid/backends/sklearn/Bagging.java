// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * {@code BaggingClassifier} and {@code BaggingRegressor}: the mean of members fitted to samples of rows and columns.
 * Stateless.
 */
final class Bagging {
    private Bagging() {}

    /** The members, each behind a selection of the columns that it was fitted to. */
    private static List<Estimator> bag(Fields f, Estimator.Factory factory) {
        List<Estimator> members = EnsembleMembers.members(f, factory);
        List<Object> columns = f.list("estimators_features_");
        List<Estimator> bag = new ArrayList<>();
        for (int m = 0; m < members.size(); m++) {
            Estimator member = members.get(m);
            if (m < columns.size() && columns.get(m) instanceof NdArray a) {
                bag.add(Chain.of(
                        f.type(),
                        List.of(
                                new FeatureSelector(f.type(), f.features(), Steps.within(a.ints(), f.features())),
                                member)));
            } else {
                bag.add(member);
            }
        }
        return bag;
    }

    static Estimator regressor(Fields f, Estimator.Factory factory) {
        List<Estimator> members = bag(f, factory);
        EnsembleMembers.require(f, members, Method.PREDICT, 0);
        double[] weights = new double[members.size()];
        Arrays.fill(weights, 1.0 / weights.length);
        return new Regressor(f.type(), f.features(), 0) {
            @Override
            Table predict(Table table) {
                return EnsembleMembers.mean(members, weights, Method.PREDICT, table);
            }
        };
    }

    static Estimator classifier(Fields f, Estimator.Factory factory) {
        List<Estimator> members = bag(f, factory);
        Labels labels = Labels.of(f.array("classes_"));
        EnsembleMembers.require(f, members, Method.PREDICT_PROBA, labels.count());
        double[] weights = new double[members.size()];
        Arrays.fill(weights, 1.0 / weights.length);
        return new Classifier(f.type(), f.features(), labels) {
            @Override
            boolean hasProba() {
                return true;
            }

            @Override
            Table proba(Table table) {
                return EnsembleMembers.mean(members, weights, Method.PREDICT_PROBA, table);
            }
        };
    }
}
