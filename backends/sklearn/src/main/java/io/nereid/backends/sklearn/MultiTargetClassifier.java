// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.List;

/**
 * A classifier of several targets. The probabilities of all targets are concatenated: the classes of the first target,
 * then those of the second, and so on. Immutable.
 */
abstract class MultiTargetClassifier extends Estimator {
    private final List<Labels> labels;
    private final DataType type;

    MultiTargetClassifier(String type, int features, List<Labels> labels) {
        super(type, features);
        this.labels = labels;
        this.type = labels.get(0).type();
        for (Labels one : labels) {
            if (one.type() != this.type) {
                throw Refusal.unsupported(type + " has targets of different types of labels");
            }
        }
    }

    /** The labels of each target, from {@code classes_}. */
    static List<Labels> labels(Fields f) {
        List<Labels> labels = new ArrayList<>();
        for (Object classes : f.list("classes_")) {
            if (!(classes instanceof NdArray a)) {
                throw f.unsupported("classes_");
            }
            labels.add(Labels.of(a));
        }
        if (labels.isEmpty()) {
            throw Refusal.corrupt(f.path() + " has no targets");
        }
        return labels;
    }

    final List<Labels> labels() {
        return labels;
    }

    boolean hasProba() {
        return true;
    }

    abstract Table proba(Table table);

    /** The predicted labels, one column per target. */
    Table predict(Table table) {
        Table all = proba(table);
        List<Table> columns = new ArrayList<>();
        int from = 0;
        for (Labels one : labels) {
            int[] places = new int[one.count()];
            for (int i = 0; i < places.length; i++) {
                places[i] = from + i;
            }
            from += places.length;
            columns.add(one.pick(Labels.greatest(all.select(places))));
        }
        return Table.beside(table.rows(), columns);
    }

    @Override
    List<Method> methods() {
        return hasProba() ? List.of(Method.PREDICT, Method.PREDICT_PROBA) : List.of(Method.PREDICT);
    }

    @Override
    int width(Method method) {
        return method == Method.PREDICT
                ? labels.size()
                : labels.stream().mapToInt(Labels::count).sum();
    }

    @Override
    DataType type(Method method) {
        return method == Method.PREDICT ? type : DataType.FP64;
    }

    @Override
    Table apply(Method method, Table table) {
        return method == Method.PREDICT ? predict(table) : proba(table);
    }
}
