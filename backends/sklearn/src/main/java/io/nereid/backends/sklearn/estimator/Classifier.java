// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.estimator;

import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.List;

/**
 * An estimator that predicts one of several classes, from probabilities ({@link #proba}) or decision scores ({@link
 * #decision}). Subclasses compute one of the two; the predicted class follows from it. Immutable.
 */
public abstract class Classifier extends Estimator {
    private final ClassLabels labels;

    public Classifier(String type, int features, ClassLabels labels) {
        super(type, features);
        this.labels = labels;
    }

    Classifier(EstimatorAttributes f) {
        this(f.type(), f.features(), ClassLabels.of(f.array("classes_")));
    }

    public final ClassLabels labels() {
        return labels;
    }

    public boolean hasProba() {
        return false;
    }

    public boolean hasDecision() {
        return false;
    }

    /** Probabilities, one column per class. */
    public DataTable proba(DataTable table) {
        throw new UnsupportedOperationException(type());
    }

    /** Decision scores: one column per class, or a single column for two classes. */
    public DataTable decision(DataTable table) {
        throw new UnsupportedOperationException(type());
    }

    public int decisionWidth() {
        return labels.count() == 2 ? 0 : labels.count();
    }

    /** The index of the predicted class of each row. */
    public int[] classes(DataTable table) {
        return hasDecision() ? byDecision(decision(table)) : ClassLabels.greatest(proba(table));
    }

    static int[] byDecision(DataTable scores) {
        if (scores.columns() > 1) {
            return ClassLabels.greatest(scores);
        }
        int[] classes = new int[scores.rows()];
        for (int r = 0; r < classes.length; r++) {
            classes[r] = scores.values()[r] > 0 ? 1 : 0;
        }
        return classes;
    }

    @Override
    public List<PredictMethod> methods() {
        List<PredictMethod> methods = new ArrayList<>(List.of(PredictMethod.PREDICT));
        if (hasProba()) {
            methods.add(PredictMethod.PREDICT_PROBA);
            methods.add(PredictMethod.PREDICT_LOG_PROBA);
        }
        if (hasDecision()) {
            methods.add(PredictMethod.DECISION_FUNCTION);
        }
        return methods;
    }

    @Override
    public int width(PredictMethod method) {
        return method == PredictMethod.PREDICT
                ? 0
                : method == PredictMethod.DECISION_FUNCTION ? decisionWidth() : labels.count();
    }

    @Override
    public DataType type(PredictMethod method) {
        return method == PredictMethod.PREDICT ? labels.type() : DataType.FP64;
    }

    @Override
    public DataTable apply(PredictMethod method, DataTable table) {
        return switch (method) {
            case PREDICT -> labels.pick(classes(table));
            case PREDICT_PROBA -> proba(table);
            case PREDICT_LOG_PROBA -> logarithms(proba(table));
            case DECISION_FUNCTION -> decision(table);
            default -> throw new UnsupportedOperationException(type());
        };
    }

    private static DataTable logarithms(DataTable table) {
        DataTable logs = DataTable.of(table.rows(), table.columns());
        for (int i = 0; i < logs.values().length; i++) {
            logs.values()[i] = Math.log(table.values()[i]);
        }
        return logs;
    }

    /** Softmax of each row, in place. The row's maximum is subtracted first, so that exp does not overflow. */
    public static void softmax(double[] x, int columns) {
        for (int from = 0; from < x.length; from += columns) {
            double max = x[from];
            for (int c = 1; c < columns; c++) {
                max = Math.max(max, x[from + c]);
            }
            double sum = 0;
            for (int c = 0; c < columns; c++) {
                x[from + c] = Math.exp(x[from + c] - max);
                sum += x[from + c];
            }
            for (int c = 0; c < columns; c++) {
                x[from + c] /= sum;
            }
        }
    }

    /** The logistic function, in a form that does not overflow for large negative values. */
    public static double sigmoid(double v) {
        return v >= 0 ? 1 / (1 + Math.exp(-v)) : Math.exp(v) / (1 + Math.exp(v));
    }

    /** The probabilities of both classes from that of the second. */
    public static DataTable twoColumns(double[] positive) {
        DataTable both = DataTable.of(positive.length, 2);
        for (int r = 0; r < positive.length; r++) {
            both.values()[2 * r] = 1 - positive[r];
            both.values()[2 * r + 1] = positive[r];
        }
        return both;
    }
}
