// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import java.util.List;

/**
 * {@code VotingClassifier} and {@code VotingRegressor}: the weighted mean or majority of several estimators. Stateless.
 */
final class Voting {
    private Voting() {}

    /** The weights of the members that were not dropped, normalised to a sum of 1. */
    private static double[] weights(Fields f, int members) {
        double[] weights = new double[members];
        java.util.Arrays.fill(weights, 1);
        if (f.has("weights")) {
            List<Object> given = Fields.asList(f.required("weights"));
            List<Object> named = f.list("estimators");
            int at = 0;
            for (int i = 0; i < given.size() && i < named.size() && at < members; i++) {
                Object estimator = Fields.asList(named.get(i)).get(1);
                if (!"drop".equals(estimator) && estimator != PyNone.NONE) {
                    weights[at++] = Values.number(given.get(i));
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

    static Estimator regressor(Fields f, Estimator.Factory factory) {
        List<Estimator> members = EnsembleMembers.members(f, factory);
        double[] weights = weights(f, members.size());
        EnsembleMembers.require(f, members, Method.PREDICT, 0);
        return new Regressor(f.type(), EnsembleMembers.features(f, members), 0) {
            @Override
            Table predict(Table table) {
                return EnsembleMembers.mean(members, weights, Method.PREDICT, table);
            }
        };
    }

    static Estimator classifier(Fields f, Estimator.Factory factory) {
        List<Estimator> members = EnsembleMembers.members(f, factory);
        double[] weights = weights(f, members.size());
        boolean soft = f.text("voting", "hard").equals("soft");
        Labels labels = Labels.of(f.array("classes_"));
        EnsembleMembers.require(f, members, soft ? Method.PREDICT_PROBA : Method.PREDICT, soft ? labels.count() : 0);
        return new Classifier(f.type(), EnsembleMembers.features(f, members), labels) {
            @Override
            boolean hasProba() {
                return soft;
            }

            @Override
            Table proba(Table table) {
                return EnsembleMembers.mean(members, weights, Method.PREDICT_PROBA, table);
            }

            @Override
            int[] classes(Table table) {
                if (soft) {
                    return Labels.greatest(proba(table));
                }
                Table votes = Table.of(table.rows(), labels.count());
                for (int m = 0; m < members.size(); m++) {
                    double[] predicted =
                            members.get(m).checked(Method.PREDICT, table).values();
                    for (int r = 0; r < predicted.length; r++) {
                        int place = EnsembleMembers.place(predicted[r], labels.count());
                        votes.values()[r * labels.count() + place] += weights[m];
                    }
                }
                return Labels.greatest(votes);
            }
        };
    }
}
