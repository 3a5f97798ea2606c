// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.estimator;

import io.nereid.tensor.DataType;
import java.util.List;

/**
 * An estimator that scores how normal a row is. {@code decision_function} is the score less an offset; {@code predict}
 * is 1 for normal rows and -1 for outliers, whose decision is negative. Immutable.
 */
public abstract class OutlierDetector extends Estimator {
    private final double offset;

    public OutlierDetector(String type, int features, double offset) {
        super(type, features);
        this.offset = offset;
    }

    /** The score of each row, higher for more normal ones. */
    protected abstract double[] scores(DataTable table);

    /** Whether a decision is that of a normal row. */
    protected boolean normal(double decision) {
        return decision >= 0;
    }

    @Override
    public final List<PredictMethod> methods() {
        return List.of(PredictMethod.PREDICT, PredictMethod.DECISION_FUNCTION, PredictMethod.SCORE_SAMPLES);
    }

    @Override
    public final int width(PredictMethod method) {
        return 0;
    }

    @Override
    public final DataType type(PredictMethod method) {
        return method == PredictMethod.PREDICT ? DataType.INT64 : DataType.FP64;
    }

    @Override
    public final DataTable apply(PredictMethod method, DataTable table) {
        double[] scores = scores(table);
        for (int r = 0; method != PredictMethod.SCORE_SAMPLES && r < scores.length; r++) {
            double decision = scores[r] - offset;
            scores[r] = method == PredictMethod.DECISION_FUNCTION ? decision : normal(decision) ? 1 : -1;
        }
        return DataTable.column(scores);
    }
}
