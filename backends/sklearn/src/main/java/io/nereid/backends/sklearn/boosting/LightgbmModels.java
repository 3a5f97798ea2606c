// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.boosting;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.pickle.PyObject;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.nio.charset.StandardCharsets;
import java.util.Map;

/**
 * The Python classes of LightGBM. The state of a {@code Booster} has its model in the library's text format under
 * {@code _handle}, before version 4 {@code handle}; the classes for scikit-learn hold a Booster. All predict with the
 * iterations up to the best one of early stopping. Stateless.
 */
final class LightgbmModels {
    static final String BACKEND = "lightgbm";

    private static final String FILE = "model.txt";

    private LightgbmModels() {}

    static Estimator of(EstimatorAttributes f, BoosterLoader loader) {
        BoosterFile file = file(f);
        return switch (f.type()) {
            case "Booster", "LGBMModel", "LGBMRegressor", "LGBMRanker" ->
                new BoosterRegressor(f.type(), loader.load(file), LoadedBooster.DEFAULT);
            case "LGBMClassifier" -> classifier(f, loader.load(file));
            default -> throw UnsupportedModel.unsupported("estimator " + f.path() + " is not supported");
        };
    }

    static BoosterFile file(EstimatorAttributes f) {
        EstimatorAttributes booster = f.type().equals("Booster") ? f : new EstimatorAttributes(f.object("_Booster"));
        if (!(booster.required("_handle", "handle") instanceof String text)) {
            throw booster.unsupported("_handle");
        }
        int best = booster.integer("best_iteration", 0);
        return new BoosterFile(
                f.path(),
                BACKEND,
                FILE,
                text.getBytes(StandardCharsets.UTF_8),
                best > 0 ? Map.of("iteration_range", "0," + best) : Map.of(),
                Double.NaN);
    }

    private static Estimator classifier(EstimatorAttributes f, LoadedBooster booster) {
        ClassLabels labels = ClassLabels.of(
                f.any("_le") instanceof PyObject encoder
                        ? new EstimatorAttributes(encoder).array("classes_")
                        : f.array("_classes"));
        int width = Math.max(1, booster.width(LoadedBooster.DEFAULT));
        if (width != (labels.count() <= 2 ? 1 : labels.count())) {
            throw UnsupportedModel.corrupt(
                    f.path() + " has " + labels.count() + " classes and " + width + " scores for a row");
        }
        // The method decision_function is of version 4.7, as is this attribute; calibrators prefer it to probabilities.
        boolean decides = f.contains("_fitted_with_feature_names");
        return new BoosterClassifier(f.type(), booster, labels, false, true, decides);
    }
}
