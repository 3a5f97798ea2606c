// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import java.util.ArrayList;
import java.util.List;

/** Estimators that ask other estimators: voting, stacking, bagging. Stateless. */
final class Ensembles {
    private Ensembles() {}

    private static List<Estimator> members(Fields f, Assembly assembly) {
        List<Estimator> members = new ArrayList<>();
        for (Object member : f.list("estimators_")) {
            if (!"drop".equals(member)) {
                members.add(assembly.build(member));
            }
        }
        if (members.isEmpty()) {
            throw Refusal.unsupported(f.path() + " has no estimators");
        }
        return members;
    }

    private static int features(Fields f, List<Estimator> members) {
        return f.knows("n_features_in_") ? f.features() : members.get(0).features();
    }

    /** Weights of the members that were not dropped, summing to 1. */
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

    /** The weighted mean of what members say. */
    private static Table mean(List<Estimator> members, double[] weights, Method method, Table table) {
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

    static Estimator votingRegressor(Fields f, Assembly assembly) {
        List<Estimator> members = members(f, assembly);
        double[] weights = weights(f, members.size());
        require(f, members, Method.PREDICT, 0);
        return new Regressor(f.type(), features(f, members), 0) {
            @Override
            Table predict(Table table) {
                return mean(members, weights, Method.PREDICT, table);
            }
        };
    }

    private static void require(Fields f, List<Estimator> members, Method method, int width) {
        for (Estimator member : members) {
            if (!member.can(method) || member.width(method) != width) {
                throw Refusal.unsupported(
                        f.path() + " with a " + member.type() + ", which cannot " + method.text() + " as needed");
            }
        }
    }

    static Estimator votingClassifier(Fields f, Assembly assembly) {
        List<Estimator> members = members(f, assembly);
        double[] weights = weights(f, members.size());
        boolean soft = f.text("voting", "hard").equals("soft");
        Labels labels = Labels.of(f.array("classes_"));
        require(f, members, soft ? Method.PREDICT_PROBA : Method.PREDICT, soft ? labels.count() : 0);
        return new Classifier(f.type(), features(f, members), labels) {
            @Override
            boolean hasProba() {
                return soft;
            }

            @Override
            Table proba(Table table) {
                return mean(members, weights, Method.PREDICT_PROBA, table);
            }

            @Override
            int[] classes(Table table) {
                if (soft) {
                    return Labels.greatest(proba(table));
                }
                Table votes = Table.of(table.rows(), labels.count());
                for (int m = 0; m < members.size(); m++) {
                    double[] said =
                            members.get(m).checked(Method.PREDICT, table).values();
                    for (int r = 0; r < said.length; r++) {
                        votes.values()[r * labels.count() + place(said[r], labels.count())] += weights[m];
                    }
                }
                return Labels.greatest(votes);
            }
        };
    }

    /** Members learnt the classes as numbers from 0 on. */
    private static int place(double said, int classes) {
        return said >= 0 && said < classes ? (int) said : 0;
    }

    static Estimator stacking(Fields f, Assembly assembly) {
        List<Estimator> members = members(f, assembly);
        List<Object> methods = f.list("stack_method_");
        boolean classes = f.has("classes_");
        int count = classes ? Labels.of(f.array("classes_")).count() : 0;
        List<Method> asked = new ArrayList<>();
        for (int m = 0; m < members.size(); m++) {
            Method method = m < methods.size() ? Method.of(String.valueOf(methods.get(m))) : null;
            if (method == null || !members.get(m).can(method)) {
                throw f.unsupported("stack_method_");
            }
            asked.add(method);
        }
        boolean passes = f.flag("passthrough", false);
        Estimator last = assembly.build(f.required("final_estimator_"));
        Transformer first = new Transformer(f.type(), features(f, members), -1) {
            @Override
            Table transform(Table table) {
                List<Table> parts = new ArrayList<>();
                for (int m = 0; m < members.size(); m++) {
                    Table one = members.get(m).checked(asked.get(m), table);
                    boolean drop = count == 2 && asked.get(m) == Method.PREDICT_PROBA;
                    parts.add(drop ? one.select(new int[] {1}) : one);
                }
                if (passes) {
                    parts.add(table);
                }
                return Table.beside(table.rows(), parts);
            }
        };
        if (!classes) {
            return Chain.of(f.type(), List.of(first, last));
        }
        Labels labels = Labels.of(f.array("classes_"));
        if (!last.can(Method.PREDICT)) {
            throw f.unsupported("final_estimator_");
        }
        return new Classifier(f.type(), first.features(), labels) {
            @Override
            boolean hasProba() {
                return last.can(Method.PREDICT_PROBA) && last.width(Method.PREDICT_PROBA) == labels.count();
            }

            @Override
            boolean hasDecision() {
                return last.can(Method.DECISION_FUNCTION);
            }

            @Override
            int decisionWidth() {
                return last.width(Method.DECISION_FUNCTION);
            }

            @Override
            Table proba(Table table) {
                return last.checked(Method.PREDICT_PROBA, first.transform(table));
            }

            @Override
            Table decision(Table table) {
                return last.checked(Method.DECISION_FUNCTION, first.transform(table));
            }

            @Override
            int[] classes(Table table) {
                double[] said =
                        last.checked(Method.PREDICT, first.transform(table)).values();
                int[] result = new int[said.length];
                for (int r = 0; r < result.length; r++) {
                    result[r] = place(said[r], labels.count());
                }
                return result;
            }
        };
    }

    /** The columns each member of a bag was given; null for all. */
    private static List<Estimator> bag(Fields f, Assembly assembly) {
        List<Estimator> members = members(f, assembly);
        List<Object> columns = f.list("estimators_features_");
        List<Estimator> bag = new ArrayList<>();
        for (int m = 0; m < members.size(); m++) {
            Estimator member = members.get(m);
            if (m < columns.size() && columns.get(m) instanceof NdArray a) {
                bag.add(Chain.of(
                        f.type(),
                        List.of(
                                new Columns.Selected(f.type(), f.features(), Assembly.within(a.ints(), f.features())),
                                member)));
            } else {
                bag.add(member);
            }
        }
        return bag;
    }

    static Estimator baggingRegressor(Fields f, Assembly assembly) {
        List<Estimator> members = bag(f, assembly);
        require(f, members, Method.PREDICT, 0);
        double[] weights = new double[members.size()];
        java.util.Arrays.fill(weights, 1.0 / weights.length);
        return new Regressor(f.type(), f.features(), 0) {
            @Override
            Table predict(Table table) {
                return mean(members, weights, Method.PREDICT, table);
            }
        };
    }

    static Estimator baggingClassifier(Fields f, Assembly assembly) {
        List<Estimator> members = bag(f, assembly);
        Labels labels = Labels.of(f.array("classes_"));
        require(f, members, Method.PREDICT_PROBA, labels.count());
        double[] weights = new double[members.size()];
        java.util.Arrays.fill(weights, 1.0 / weights.length);
        return new Classifier(f.type(), f.features(), labels) {
            @Override
            boolean hasProba() {
                return true;
            }

            @Override
            Table proba(Table table) {
                return mean(members, weights, Method.PREDICT_PROBA, table);
            }
        };
    }
}
