// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.ensemble;

import io.nereid.backends.sklearn.compose.Pipeline;
import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Transformer;
import java.util.ArrayList;
import java.util.List;

/**
 * {@code StackingClassifier} and {@code StackingRegressor}: a final estimator on the predictions of others. Stateless.
 */
public final class Stacking {
    private Stacking() {}

    /** The members' predictions are columns of the final estimator's input; of two classes the first is redundant. */
    public static Estimator of(EstimatorAttributes f, Estimator.Factory factory) {
        List<Estimator> members = EnsembleMembers.members(f, factory);
        List<Object> methods = f.list("stack_method_");
        boolean classes = f.has("classes_");
        int count = classes ? ClassLabels.of(f.array("classes_")).count() : 0;
        List<PredictMethod> stackMethods = new ArrayList<>();
        for (int m = 0; m < members.size(); m++) {
            PredictMethod method = m < methods.size() ? PredictMethod.of(String.valueOf(methods.get(m))) : null;
            if (method == null || !members.get(m).can(method)) {
                throw f.unsupported("stack_method_");
            }
            stackMethods.add(method);
        }
        boolean passes = f.flag("passthrough", false);
        Estimator last = factory.build(f.required("final_estimator_"));
        Transformer first = new Transformer(f.type(), EnsembleMembers.features(f, members), -1) {
            @Override
            public DataTable transform(DataTable table) {
                List<DataTable> parts = new ArrayList<>();
                for (int m = 0; m < members.size(); m++) {
                    DataTable one = members.get(m).checked(stackMethods.get(m), table);
                    boolean drop = count == 2 && stackMethods.get(m) == PredictMethod.PREDICT_PROBA;
                    parts.add(drop ? one.select(new int[] {1}) : one);
                }
                if (passes) {
                    parts.add(table);
                }
                return DataTable.beside(table.rows(), parts);
            }
        };
        if (!classes) {
            return Pipeline.of(f.type(), List.of(first, last));
        }
        ClassLabels labels = ClassLabels.of(f.array("classes_"));
        if (!last.can(PredictMethod.PREDICT)) {
            throw f.unsupported("final_estimator_");
        }
        return new Classifier(f.type(), first.features(), labels) {
            @Override
            public boolean hasProba() {
                return last.can(PredictMethod.PREDICT_PROBA)
                        && last.width(PredictMethod.PREDICT_PROBA) == labels.count();
            }

            @Override
            public boolean hasDecision() {
                return last.can(PredictMethod.DECISION_FUNCTION);
            }

            @Override
            public int decisionWidth() {
                return last.width(PredictMethod.DECISION_FUNCTION);
            }

            @Override
            public DataTable proba(DataTable table) {
                return last.checked(PredictMethod.PREDICT_PROBA, first.transform(table));
            }

            @Override
            public DataTable decision(DataTable table) {
                return last.checked(PredictMethod.DECISION_FUNCTION, first.transform(table));
            }

            @Override
            public int[] classes(DataTable table) {
                double[] predicted = last.checked(PredictMethod.PREDICT, first.transform(table))
                        .values();
                int[] result = new int[predicted.length];
                for (int r = 0; r < result.length; r++) {
                    result[r] = EnsembleMembers.place(predicted[r], labels.count());
                }
                return result;
            }
        };
    }
}
