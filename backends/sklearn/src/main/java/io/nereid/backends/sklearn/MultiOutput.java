// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import java.util.ArrayList;
import java.util.List;

/** {@code MultiOutputClassifier} and {@code MultiOutputRegressor}: one independent estimator per target. Stateless. */
final class MultiOutput {
    private MultiOutput() {}

    /** Builds the members, which must return one value per row each. */
    static List<Estimator> members(Fields f, Estimator.Factory factory) {
        List<Estimator> members = new ArrayList<>();
        for (Object member : f.list("estimators_")) {
            Estimator one = factory.build(member);
            if (!one.can(Method.PREDICT) || one.width(Method.PREDICT) != 0) {
                throw Refusal.unsupported(
                        f.path() + " with a " + one.type() + ", which does not return one value per row");
            }
            members.add(one);
        }
        if (members.isEmpty()) {
            throw Refusal.unsupported(f.path() + " has no estimators");
        }
        return members;
    }

    private static Table all(List<Estimator> members, Method method, Table table) {
        List<Table> parts = new ArrayList<>();
        for (Estimator member : members) {
            parts.add(member.checked(method, table));
        }
        return Table.beside(table.rows(), parts);
    }

    static Estimator regressor(Fields f, Estimator.Factory factory) {
        List<Estimator> members = members(f, factory);
        return new Regressor(f.type(), members.get(0).features(), members.size()) {
            @Override
            Table predict(Table table) {
                return all(members, Method.PREDICT, table);
            }
        };
    }

    static Estimator classifier(Fields f, Estimator.Factory factory) {
        List<Estimator> members = members(f, factory);
        List<Labels> labels = new ArrayList<>();
        boolean proba = true;
        for (Estimator member : members) {
            if (!f.has("classes_")) {
                if (!(member instanceof Classifier c)) {
                    throw Refusal.unsupported(f.path() + " with a " + member.type());
                }
                labels.add(c.labels());
            }
            proba &= member.can(Method.PREDICT_PROBA);
        }
        if (f.has("classes_")) {
            labels.addAll(MultiTargetClassifier.labels(f));
        }
        for (int m = 0; m < members.size(); m++) {
            if (labels.size() != members.size()
                    || (proba
                            && members.get(m).width(Method.PREDICT_PROBA)
                                    != labels.get(m).count())) {
                throw Refusal.corrupt(f.path() + " has estimators with other classes");
            }
        }
        boolean all = proba;
        return new MultiTargetClassifier(f.type(), members.get(0).features(), labels) {
            @Override
            boolean hasProba() {
                return all;
            }

            @Override
            Table proba(Table table) {
                return all(members, Method.PREDICT_PROBA, table);
            }

            @Override
            Table predict(Table table) {
                return all(members, Method.PREDICT, table);
            }
        };
    }
}
