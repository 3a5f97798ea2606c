// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.boosting;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.tensor.DataType;
import java.util.List;

/**
 * A classifier of several binary targets (multilabel): {@code predict} is a column of 0 and 1 for each target,
 * {@code predict_proba} the probability of 1. Immutable.
 */
final class TagClassifier extends Estimator implements BoosterEstimator {
    private final LoadedBooster booster;
    private final String proba;

    /** @param proba the signature of the native model that returns the probabilities */
    TagClassifier(String type, LoadedBooster booster, String proba) {
        super(type, booster.features());
        this.booster = booster;
        this.proba = proba;
    }

    @Override
    public LoadedBooster booster() {
        return booster;
    }

    @Override
    public List<PredictMethod> methods() {
        return List.of(PredictMethod.PREDICT, PredictMethod.PREDICT_PROBA);
    }

    @Override
    public int width(PredictMethod method) {
        return booster.width(proba);
    }

    @Override
    public DataType type(PredictMethod method) {
        return method == PredictMethod.PREDICT ? DataType.INT64 : booster.type(proba);
    }

    @Override
    public DataTable apply(PredictMethod method, DataTable table) {
        DataTable p = booster.run(proba, table);
        if (method == PredictMethod.PREDICT_PROBA) {
            return p;
        }
        DataTable tags = DataTable.of(p.rows(), p.columns());
        for (int i = 0; i < tags.values().length; i++) {
            tags.values()[i] = p.values()[i] > 0.5 ? 1 : 0;
        }
        return tags;
    }
}
