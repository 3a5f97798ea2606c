// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.estimator;

import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.List;

/**
 * A classifier of several targets. The probabilities of all targets are concatenated: the classes of the first target,
 * then those of the second, and so on. Immutable.
 */
public abstract class MultiTargetClassifier extends Estimator {
    private final List<ClassLabels> labels;
    private final DataType type;

    public MultiTargetClassifier(String type, int features, List<ClassLabels> labels) {
        super(type, features);
        this.labels = labels;
        this.type = labels.get(0).type();
        for (ClassLabels one : labels) {
            if (one.type() != this.type) {
                throw UnsupportedModel.unsupported(type + " has targets of different types of labels");
            }
        }
    }

    /** The labels of each target, from {@code classes_}. */
    public static List<ClassLabels> labels(EstimatorAttributes f) {
        List<ClassLabels> labels = new ArrayList<>();
        for (Object classes : f.list("classes_")) {
            if (!(classes instanceof NdArray a)) {
                throw f.unsupported("classes_");
            }
            labels.add(ClassLabels.of(a));
        }
        if (labels.isEmpty()) {
            throw UnsupportedModel.corrupt(f.path() + " has no targets");
        }
        return labels;
    }

    public final List<ClassLabels> labels() {
        return labels;
    }

    public boolean hasProba() {
        return true;
    }

    public abstract DataTable proba(DataTable table);

    /** The predicted labels, one column per target. */
    public DataTable predict(DataTable table) {
        DataTable all = proba(table);
        List<DataTable> columns = new ArrayList<>();
        int from = 0;
        for (ClassLabels one : labels) {
            int[] places = new int[one.count()];
            for (int i = 0; i < places.length; i++) {
                places[i] = from + i;
            }
            from += places.length;
            columns.add(one.pick(ClassLabels.greatest(all.select(places))));
        }
        return DataTable.beside(table.rows(), columns);
    }

    @Override
    public List<PredictMethod> methods() {
        return hasProba()
                ? List.of(PredictMethod.PREDICT, PredictMethod.PREDICT_PROBA)
                : List.of(PredictMethod.PREDICT);
    }

    @Override
    public int width(PredictMethod method) {
        return method == PredictMethod.PREDICT
                ? labels.size()
                : labels.stream().mapToInt(ClassLabels::count).sum();
    }

    @Override
    public DataType type(PredictMethod method) {
        return method == PredictMethod.PREDICT ? type : DataType.FP64;
    }

    @Override
    public DataTable apply(PredictMethod method, DataTable table) {
        return method == PredictMethod.PREDICT ? predict(table) : proba(table);
    }
}
