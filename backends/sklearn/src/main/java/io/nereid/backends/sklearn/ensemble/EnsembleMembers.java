// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.ensemble;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.ArrayList;
import java.util.List;

/** The members of an ensemble of arbitrary estimators, and the mean of their results. Stateless. */
final class EnsembleMembers {
    private EnsembleMembers() {}

    /** Builds the fitted members; dropped ones are left out. */
    static List<Estimator> members(EstimatorAttributes f, Estimator.Factory factory) {
        List<Estimator> members = new ArrayList<>();
        for (Object member : f.list("estimators_")) {
            if (!"drop".equals(member)) {
                members.add(factory.build(member));
            }
        }
        if (members.isEmpty()) {
            throw UnsupportedModel.unsupported(f.path() + " has no estimators");
        }
        return members;
    }

    static int features(EstimatorAttributes f, List<Estimator> members) {
        return f.contains("n_features_in_") ? f.features() : members.get(0).features();
    }

    /** The weighted mean of the members' results. */
    static DataTable mean(List<Estimator> members, double[] weights, PredictMethod method, DataTable table) {
        DataTable mean = null;
        for (int m = 0; m < members.size(); m++) {
            DataTable one = members.get(m).checked(method, table);
            mean = mean == null ? DataTable.of(one.rows(), one.columns()) : mean;
            for (int i = 0; i < mean.values().length; i++) {
                mean.values()[i] += weights[m] * one.values()[i];
            }
        }
        return mean == null ? table : mean;
    }

    /** Rejects members without the method, or with a result of another width. */
    static void require(EstimatorAttributes f, List<Estimator> members, PredictMethod method, int width) {
        for (Estimator member : members) {
            if (!member.can(method) || member.width(method) != width) {
                throw UnsupportedModel.unsupported(
                        f.path() + " with a " + member.type() + " without a suitable " + method.text());
            }
        }
    }

    /** The class index of a member's prediction: members are fitted to encoded classes, 0, 1, and so on. */
    static int place(double predicted, int classes) {
        return predicted >= 0 && predicted < classes ? (int) predicted : 0;
    }
}
