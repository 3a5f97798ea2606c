// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.List;

/**
 * {@code ClassifierChain} and {@code RegressorChain}: one estimator per target, each of which also gets the predictions
 * of those before it. Immutable.
 */
final class EstimatorChain extends Estimator {
    private final List<Estimator> members;
    private final int[] order;
    private final List<Method> methods = new ArrayList<>(List.of(Method.PREDICT));

    private EstimatorChain(String type, int features, List<Estimator> members, int[] order) {
        super(type, features);
        this.members = members;
        this.order = order;
        if (members.stream().allMatch(m -> m.can(Method.PREDICT_PROBA) && m.width(Method.PREDICT_PROBA) == 2)) {
            methods.add(Method.PREDICT_PROBA);
        }
        if (members.stream()
                .allMatch(m -> m.can(Method.DECISION_FUNCTION) && m.width(Method.DECISION_FUNCTION) == 0)) {
            methods.add(Method.DECISION_FUNCTION);
        }
    }

    /**
     * A chain: each member gets the input and all earlier predictions; results are put in the order of {@code order_}.
     */
    static Estimator of(Fields f, Estimator.Factory factory) {
        List<Estimator> members = MultiOutput.members(f, factory);
        int features = members.get(0).features();
        int[] order = f.has("order_") ? order(f.required("order_")) : new int[0];
        boolean[] seen = new boolean[members.size()];
        for (int place : order) {
            if (place < 0 || place >= seen.length || seen[place]) {
                throw Refusal.corrupt(f.path() + " has an 'order_' that is not a permutation");
            }
            seen[place] = true;
        }
        Method chainMethod = Method.of(f.text("chain_method_", "predict"));
        if (order.length != members.size() || chainMethod != Method.PREDICT) {
            throw f.unsupported("chain_method_");
        }
        for (Estimator member : members) {
            if (member.type(Method.PREDICT) == DataType.BYTES) {
                throw Refusal.unsupported(f.path() + " with text labels");
            }
        }
        return new EstimatorChain(f.type(), features, members, order);
    }

    private static int[] order(Object value) {
        List<Object> places = Fields.asList(value);
        int[] order = new int[places.size()];
        for (int i = 0; i < order.length; i++) {
            order[i] = (int) Values.number(places.get(i));
        }
        return order;
    }

    @Override
    List<Method> methods() {
        return methods;
    }

    @Override
    int width(Method method) {
        return members.size();
    }

    @Override
    Table apply(Method method, Table table) {
        Table seen = table;
        double[][] answers = new double[members.size()][];
        for (int m = 0; m < answers.length; m++) {
            Table predicted = members.get(m).checked(Method.PREDICT, seen);
            Table answer = method == Method.PREDICT ? predicted : members.get(m).checked(method, seen);
            answers[order[m]] = (method == Method.PREDICT_PROBA ? answer.select(new int[] {1}) : answer).values();
            seen = Table.beside(table.rows(), List.of(seen, predicted));
        }
        Table result = Table.of(table.rows(), answers.length);
        for (int i = 0; i < result.values().length; i++) {
            result.values()[i] = answers[i % answers.length][i / answers.length];
        }
        return result;
    }
}
