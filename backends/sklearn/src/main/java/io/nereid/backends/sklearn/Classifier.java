// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import io.nereid.tensor.DataType;
import java.util.ArrayList;
import java.util.List;

/**
 * An estimator that predicts one of several classes, from probabilities ({@link #proba}) or decision scores ({@link
 * #decision}). Subclasses compute one of the two; the predicted class follows from it. Immutable.
 */
abstract class Classifier extends Estimator {
    private final Labels labels;

    Classifier(String type, int features, Labels labels) {
        super(type, features);
        this.labels = labels;
    }

    Classifier(Fields f) {
        this(f.type(), f.features(), Labels.of(f.array("classes_")));
    }

    final Labels labels() {
        return labels;
    }

    boolean hasProba() {
        return false;
    }

    boolean hasDecision() {
        return false;
    }

    /** Probabilities, one column per class. */
    Table proba(Table table) {
        throw new UnsupportedOperationException(type());
    }

    /** Decision scores: one column per class, or a single column for two classes. */
    Table decision(Table table) {
        throw new UnsupportedOperationException(type());
    }

    int decisionWidth() {
        return labels.count() == 2 ? 0 : labels.count();
    }

    /** The index of the predicted class of each row. */
    int[] classes(Table table) {
        return hasDecision() ? byDecision(decision(table)) : Labels.greatest(proba(table));
    }

    static int[] byDecision(Table scores) {
        if (scores.columns() > 1) {
            return Labels.greatest(scores);
        }
        int[] classes = new int[scores.rows()];
        for (int r = 0; r < classes.length; r++) {
            classes[r] = scores.values()[r] > 0 ? 1 : 0;
        }
        return classes;
    }

    @Override
    List<Method> methods() {
        List<Method> methods = new ArrayList<>(List.of(Method.PREDICT));
        if (hasProba()) {
            methods.add(Method.PREDICT_PROBA);
            methods.add(Method.PREDICT_LOG_PROBA);
        }
        if (hasDecision()) {
            methods.add(Method.DECISION_FUNCTION);
        }
        return methods;
    }

    @Override
    int width(Method method) {
        return method == Method.PREDICT ? 0 : method == Method.DECISION_FUNCTION ? decisionWidth() : labels.count();
    }

    @Override
    DataType type(Method method) {
        return method == Method.PREDICT ? labels.type() : DataType.FP64;
    }

    @Override
    Table apply(Method method, Table table) {
        return switch (method) {
            case PREDICT -> labels.pick(classes(table));
            case PREDICT_PROBA -> proba(table);
            case PREDICT_LOG_PROBA -> logarithms(proba(table));
            case DECISION_FUNCTION -> decision(table);
            default -> throw new UnsupportedOperationException(type());
        };
    }

    private static Table logarithms(Table table) {
        Table logs = Table.of(table.rows(), table.columns());
        for (int i = 0; i < logs.values().length; i++) {
            logs.values()[i] = Math.log(table.values()[i]);
        }
        return logs;
    }

    /** Softmax of each row, in place. The row's maximum is subtracted first, so that exp does not overflow. */
    static void softmax(double[] x, int columns) {
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
    static double sigmoid(double v) {
        return v >= 0 ? 1 / (1 + Math.exp(-v)) : Math.exp(v) / (1 + Math.exp(v));
    }

    /** The probabilities of both classes from that of the second. */
    static Table twoColumns(double[] positive) {
        Table both = Table.of(positive.length, 2);
        for (int r = 0; r < positive.length; r++) {
            both.values()[2 * r] = 1 - positive[r];
            both.values()[2 * r + 1] = positive[r];
        }
        return both;
    }
}
