// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import io.nereid.tensor.DataType;
import java.util.Locale;
import org.jspecify.annotations.Nullable;

/** CatBoost's prediction types, each with the name of its output, and how it is computed from raw scores. Immutable. */
enum PredictionType {
    PREDICT("Class"),
    PREDICT_PROBA("Probability"),
    PREDICT_LOG_PROBA("LogProbability"),
    MARGIN("RawFormulaVal");

    /** The name in CatBoost. */
    final String predictionType;

    PredictionType(String predictionType) {
        this.predictionType = predictionType;
    }

    /** The output of this name, or null. */
    static @Nullable PredictionType of(String name) {
        for (PredictionType output : values()) {
            if (output.toString().equals(name)) {
                return output;
            }
        }
        return null;
    }

    @Override
    public String toString() {
        return name().toLowerCase(Locale.ROOT);
    }

    boolean suits(ParsedModel model) {
        return this == PREDICT || this == MARGIN || model.classifies();
    }

    /** The number of values per row; 1 for an output without a dimension of its own. */
    int width(ParsedModel model) {
        int outputs = model.ensemble().outputs();
        return switch (this) {
            case PREDICT -> model.classifies() && !model.manyLabels() ? 1 : outputs;
            case MARGIN -> outputs;
            case PREDICT_PROBA, PREDICT_LOG_PROBA ->
                model.manyLabels() ? outputs : model.labels().size();
        };
    }

    DataType type(ParsedModel model) {
        return this != PREDICT || !model.classifies()
                ? DataType.FP64
                : model.manyLabels() ? DataType.INT64 : model.labelType();
    }

    /** Converts a row's raw scores to the output; a class is returned as its index. */
    void answer(ParsedModel model, double[] sums, double[] to) {
        int n = model.ensemble().outputs();
        switch (this) {
            case MARGIN -> System.arraycopy(sums, 0, to, 0, n);
            case PREDICT -> predict(model, sums, to, n);
            case PREDICT_PROBA -> proba(model, sums, to, n);
            case PREDICT_LOG_PROBA -> {
                proba(model, sums, to, n);
                for (int i = 0; i < width(model); i++) {
                    to[i] = Math.log(to[i]);
                }
            }
        }
    }

    private static void predict(ParsedModel model, double[] sums, double[] to, int n) {
        if (!model.classifies()) {
            boolean exp = model.loss().equals("Poisson") || model.loss().equals("Tweedie");
            for (int i = 0; i < n; i++) {
                to[i] = exp ? Math.exp(sums[i]) : sums[i];
            }
            if (model.loss().equals("RMSEWithUncertainty") && n == 2) {
                to[1] = Math.exp(2 * sums[1]);
            }
            return;
        }
        if (model.manyLabels()) {
            for (int i = 0; i < n; i++) {
                to[i] = sums[i] > 0 ? 1 : 0;
            }
            return;
        }
        if (n == 1) {
            to[0] = sums[0] > model.threshold() ? 1 : 0;
            return;
        }
        int best = 0;
        for (int i = 1; i < n; i++) {
            best = sums[i] > sums[best] ? i : best;
        }
        to[0] = best;
    }

    private static void proba(ParsedModel model, double[] sums, double[] to, int n) {
        if (n == 1 && !model.manyLabels()) {
            to[1] = sigmoid(sums[0]);
            to[0] = 1 - to[1];
            return;
        }
        if (model.manyLabels() || model.loss().equals("MultiClassOneVsAll")) {
            for (int i = 0; i < n; i++) {
                to[i] = sigmoid(sums[i]);
            }
            return;
        }
        double max = sums[0];
        for (int i = 1; i < n; i++) {
            max = Math.max(max, sums[i]);
        }
        double all = 0;
        for (int i = 0; i < n; i++) {
            to[i] = Math.exp(sums[i] - max);
            all += to[i];
        }
        for (int i = 0; i < n; i++) {
            to[i] /= all;
        }
    }

    private static double sigmoid(double x) {
        return 1 / (1 + Math.exp(-x));
    }
}
