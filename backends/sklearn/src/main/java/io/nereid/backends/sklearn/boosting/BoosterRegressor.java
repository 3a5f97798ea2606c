// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.boosting;

import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.PredictMethod;
import io.nereid.backends.sklearn.estimator.Regressor;
import io.nereid.tensor.DataType;

/** Regressors and rankers, and boosters without a scikit-learn class: one output of the native model. Immutable. */
final class BoosterRegressor extends Regressor implements BoosterEstimator {
    private final LoadedBooster booster;
    private final String signature;

    /** @param signature the signature of the native model that {@code predict} returns */
    BoosterRegressor(String type, LoadedBooster booster, String signature) {
        super(type, booster.features(), booster.width(signature));
        this.booster = booster;
        this.signature = signature;
    }

    @Override
    public LoadedBooster booster() {
        return booster;
    }

    @Override
    public DataType type(PredictMethod method) {
        return booster.type(signature);
    }

    @Override
    public DataTable predict(DataTable table) {
        return booster.run(signature, table);
    }
}
