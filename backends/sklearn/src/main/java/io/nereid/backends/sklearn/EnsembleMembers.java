// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import java.util.ArrayList;
import java.util.List;

/** The members of an ensemble of arbitrary estimators, and the mean of their results. Stateless. */
final class EnsembleMembers {
    private EnsembleMembers() {}

    /** Builds the fitted members; dropped ones are left out. */
    static List<Estimator> members(Fields f, Estimator.Factory factory) {
        List<Estimator> members = new ArrayList<>();
        for (Object member : f.list("estimators_")) {
            if (!"drop".equals(member)) {
                members.add(factory.build(member));
            }
        }
        if (members.isEmpty()) {
            throw Refusal.unsupported(f.path() + " has no estimators");
        }
        return members;
    }

    static int features(Fields f, List<Estimator> members) {
        return f.contains("n_features_in_") ? f.features() : members.get(0).features();
    }

    /** The weighted mean of the members' results. */
    static Table mean(List<Estimator> members, double[] weights, Method method, Table table) {
        Table mean = null;
        for (int m = 0; m < members.size(); m++) {
            Table one = members.get(m).checked(method, table);
            mean = mean == null ? Table.of(one.rows(), one.columns()) : mean;
            for (int i = 0; i < mean.values().length; i++) {
                mean.values()[i] += weights[m] * one.values()[i];
            }
        }
        return mean == null ? table : mean;
    }

    /** Rejects members without the method, or with a result of another width. */
    static void require(Fields f, List<Estimator> members, Method method, int width) {
        for (Estimator member : members) {
            if (!member.can(method) || member.width(method) != width) {
                throw Refusal.unsupported(
                        f.path() + " with a " + member.type() + " without a suitable " + method.text());
            }
        }
    }

    /** The class index of a member's prediction: members are fitted to encoded classes, 0, 1, and so on. */
    static int place(double predicted, int classes) {
        return predicted >= 0 && predicted < classes ? (int) predicted : 0;
    }
}
