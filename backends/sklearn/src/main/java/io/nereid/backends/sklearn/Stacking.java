// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import java.util.ArrayList;
import java.util.List;

/**
 * {@code StackingClassifier} and {@code StackingRegressor}: a final estimator on the predictions of others. Stateless.
 */
final class Stacking {
    private Stacking() {}

    /** The members' predictions are columns of the final estimator's input; of two classes the first is redundant. */
    static Estimator of(Fields f, Estimator.Factory factory) {
        List<Estimator> members = EnsembleMembers.members(f, factory);
        List<Object> methods = f.list("stack_method_");
        boolean classes = f.has("classes_");
        int count = classes ? Labels.of(f.array("classes_")).count() : 0;
        List<Method> stackMethods = new ArrayList<>();
        for (int m = 0; m < members.size(); m++) {
            Method method = m < methods.size() ? Method.of(String.valueOf(methods.get(m))) : null;
            if (method == null || !members.get(m).can(method)) {
                throw f.unsupported("stack_method_");
            }
            stackMethods.add(method);
        }
        boolean passes = f.flag("passthrough", false);
        Estimator last = factory.build(f.required("final_estimator_"));
        Transformer first = new Transformer(f.type(), EnsembleMembers.features(f, members), -1) {
            @Override
            Table transform(Table table) {
                List<Table> parts = new ArrayList<>();
                for (int m = 0; m < members.size(); m++) {
                    Table one = members.get(m).checked(stackMethods.get(m), table);
                    boolean drop = count == 2 && stackMethods.get(m) == Method.PREDICT_PROBA;
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
                double[] predicted =
                        last.checked(Method.PREDICT, first.transform(table)).values();
                int[] result = new int[predicted.length];
                for (int r = 0; r < result.length; r++) {
                    result[r] = EnsembleMembers.place(predicted[r], labels.count());
                }
                return result;
            }
        };
    }
}
