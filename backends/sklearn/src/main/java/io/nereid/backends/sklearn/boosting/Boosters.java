// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.boosting;

import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.pickle.PyObject;
import io.nereid.base.ServingException;

/** The classes of XGBoost, LightGBM and CatBoost that a model file may contain. Stateless. */
public final class Boosters {
    private Boosters() {}

    /** Whether an object is of one of these libraries. */
    public static boolean has(PyObject object) {
        return object.type().isOf(XgboostModels.BACKEND)
                || object.type().isOf(LightgbmModels.BACKEND)
                || object.type().isOf(CatboostModels.BACKEND);
    }

    /**
     * The estimator of an object, computed by its library's backend.
     *
     * @throws ServingException INVALID_ARGUMENT for a class that is not supported, or is not fitted; what
     *     {@link BoosterLoader#load} throws
     */
    public static Estimator build(EstimatorAttributes f, BoosterLoader loader) {
        if (f.object().type().isOf(XgboostModels.BACKEND)) {
            return XgboostModels.of(f, loader);
        }
        return f.object().type().isOf(LightgbmModels.BACKEND)
                ? LightgbmModels.of(f, loader)
                : CatboostModels.of(f, loader);
    }
}
