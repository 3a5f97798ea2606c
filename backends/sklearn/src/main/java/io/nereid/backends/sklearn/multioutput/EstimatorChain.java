// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.multioutput;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.pickle.PythonValues;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.List;

/**
 * {@code ClassifierChain} and {@code RegressorChain}: one estimator per target, each of which also gets the predictions
 * of those before it. Immutable.
 */
public final class EstimatorChain extends Estimator {
    private final List<Estimator> members;
    private final int[] order;
    private final List<PredictMethod> methods = new ArrayList<>(List.of(PredictMethod.PREDICT));

    private EstimatorChain(String type, int features, List<Estimator> members, int[] order) {
        super(type, features);
        this.members = members;
        this.order = order;
        if (members.stream()
                .allMatch(m -> m.can(PredictMethod.PREDICT_PROBA) && m.width(PredictMethod.PREDICT_PROBA) == 2)) {
            methods.add(PredictMethod.PREDICT_PROBA);
        }
        if (members.stream()
                .allMatch(
                        m -> m.can(PredictMethod.DECISION_FUNCTION) && m.width(PredictMethod.DECISION_FUNCTION) == 0)) {
            methods.add(PredictMethod.DECISION_FUNCTION);
        }
    }

    /**
     * A chain: each member gets the input and all earlier predictions; results are put in the order of {@code order_}.
     */
    public static Estimator of(EstimatorAttributes f, Estimator.Factory factory) {
        List<Estimator> members = MultiOutput.members(f, factory);
        int features = members.get(0).features();
        int[] order = f.has("order_") ? order(f.required("order_")) : new int[0];
        boolean[] seen = new boolean[members.size()];
        for (int place : order) {
            if (place < 0 || place >= seen.length || seen[place]) {
                throw UnsupportedModel.corrupt(f.path() + " has an 'order_' that is not a permutation");
            }
            seen[place] = true;
        }
        PredictMethod chainMethod = PredictMethod.of(f.text("chain_method_", "predict"));
        if (order.length != members.size() || chainMethod != PredictMethod.PREDICT) {
            throw f.unsupported("chain_method_");
        }
        for (Estimator member : members) {
            if (member.type(PredictMethod.PREDICT) == DataType.BYTES) {
                throw UnsupportedModel.unsupported(f.path() + " with text labels");
            }
        }
        return new EstimatorChain(f.type(), features, members, order);
    }

    private static int[] order(Object value) {
        List<Object> places = EstimatorAttributes.asList(value);
        int[] order = new int[places.size()];
        for (int i = 0; i < order.length; i++) {
            order[i] = (int) PythonValues.number(places.get(i));
        }
        return order;
    }

    @Override
    public List<PredictMethod> methods() {
        return methods;
    }

    @Override
    public int width(PredictMethod method) {
        return members.size();
    }

    @Override
    public DataTable apply(PredictMethod method, DataTable table) {
        DataTable seen = table;
        double[][] answers = new double[members.size()][];
        for (int m = 0; m < answers.length; m++) {
            DataTable predicted = members.get(m).checked(PredictMethod.PREDICT, seen);
            DataTable answer =
                    method == PredictMethod.PREDICT ? predicted : members.get(m).checked(method, seen);
            answers[order[m]] =
                    (method == PredictMethod.PREDICT_PROBA ? answer.select(new int[] {1}) : answer).values();
            seen = DataTable.beside(table.rows(), List.of(seen, predicted));
        }
        DataTable result = DataTable.of(table.rows(), answers.length);
        for (int i = 0; i < result.values().length; i++) {
            result.values()[i] = answers[i % answers.length][i / answers.length];
        }
        return result;
    }
}
