// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.boosting;

import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.pickle.PyObject;
import io.nereid.backends.sklearn.pickle.PythonValues;
import io.nereid.base.ServingException;
import org.jspecify.annotations.Nullable;

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

    /**
     * The native model of an object alone, as its library saves it.
     *
     * @throws ServingException INVALID_ARGUMENT for an object that is not fitted
     */
    public static BoosterFile nativeFile(EstimatorAttributes f) {
        if (!f.object().type().isOf(XgboostModels.BACKEND)) {
            return f.object().type().isOf(LightgbmModels.BACKEND) ? LightgbmModels.file(f) : CatboostModels.file(f);
        }
        BoosterFile snapshot = XgboostModels.file(f);
        return new BoosterFile(
                snapshot.origin(),
                snapshot.backend(),
                XgboostSnapshot.isJson(snapshot.content()) ? "model.json" : snapshot.fileName(),
                XgboostSnapshot.model(snapshot.content()),
                snapshot.parameters(),
                snapshot.missing());
    }

    /**
     * The attribute {@code feature_importances_} of an object, which its library computes; null when it has none.
     *
     * @throws ServingException INVALID_ARGUMENT for an object that is not fitted, or importances that are not supported
     */
    public static double @Nullable [] importances(EstimatorAttributes f) {
        if (f.object().type().isOf(XgboostModels.BACKEND)) {
            String type = f.text("importance_type", "gain");
            return XgboostSnapshot.importances(XgboostModels.file(f).content(), type);
        }
        if (f.object().type().isOf(LightgbmModels.BACKEND)) {
            return LightgbmModels.importances(f);
        }
        String name = f.has("_prediction_values_change") ? "_prediction_values_change" : "_loss_value_change";
        return f.has(name)
                ? f.list(name).stream().mapToDouble(PythonValues::number).toArray()
                : null;
    }
}
