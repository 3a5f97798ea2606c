// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.multioutput;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.MultiTargetClassifier;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Regressor;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.ArrayList;
import java.util.List;

/** {@code MultiOutputClassifier} and {@code MultiOutputRegressor}: one independent estimator per target. Stateless. */
public final class MultiOutput {
    private MultiOutput() {}

    /** Builds the members, which must return one value per row each. */
    static List<Estimator> members(EstimatorAttributes f, Estimator.Factory factory) {
        List<Estimator> members = new ArrayList<>();
        for (Object member : f.list("estimators_")) {
            Estimator one = factory.build(member);
            if (!one.can(PredictMethod.PREDICT) || one.width(PredictMethod.PREDICT) != 0) {
                throw UnsupportedModel.unsupported(
                        f.path() + " with a " + one.type() + ", which does not return one value per row");
            }
            members.add(one);
        }
        if (members.isEmpty()) {
            throw UnsupportedModel.unsupported(f.path() + " has no estimators");
        }
        return members;
    }

    private static DataTable all(List<Estimator> members, PredictMethod method, DataTable table) {
        List<DataTable> parts = new ArrayList<>();
        for (Estimator member : members) {
            parts.add(member.checked(method, table));
        }
        return DataTable.beside(table.rows(), parts);
    }

    public static Estimator regressor(EstimatorAttributes f, Estimator.Factory factory) {
        List<Estimator> members = members(f, factory);
        return new Regressor(f.type(), members.get(0).features(), members.size()) {
            @Override
            public DataTable predict(DataTable table) {
                return all(members, PredictMethod.PREDICT, table);
            }
        };
    }

    public static Estimator classifier(EstimatorAttributes f, Estimator.Factory factory) {
        List<Estimator> members = members(f, factory);
        List<ClassLabels> labels = new ArrayList<>();
        boolean proba = true;
        for (Estimator member : members) {
            if (!f.has("classes_")) {
                if (!(member instanceof Classifier c)) {
                    throw UnsupportedModel.unsupported(f.path() + " with a " + member.type());
                }
                labels.add(c.labels());
            }
            proba &= member.can(PredictMethod.PREDICT_PROBA);
        }
        if (f.has("classes_")) {
            labels.addAll(MultiTargetClassifier.labels(f));
        }
        for (int m = 0; m < members.size(); m++) {
            if (labels.size() != members.size()
                    || (proba
                            && members.get(m).width(PredictMethod.PREDICT_PROBA)
                                    != labels.get(m).count())) {
                throw UnsupportedModel.corrupt(f.path() + " has estimators with other classes");
            }
        }
        boolean all = proba;
        return new MultiTargetClassifier(f.type(), members.get(0).features(), labels) {
            @Override
            public boolean hasProba() {
                return all;
            }

            @Override
            public DataTable proba(DataTable table) {
                return all(members, PredictMethod.PREDICT_PROBA, table);
            }

            @Override
            public DataTable predict(DataTable table) {
                return all(members, PredictMethod.PREDICT, table);
            }
        };
    }
}
