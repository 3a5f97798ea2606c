// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.boosting;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.pickle.NdArray;
import io.nereid.backends.sklearn.pickle.PyObject;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The Python classes of XGBoost. The state of a {@code Booster} has its snapshot under {@code handle}: a document in
 * JSON or UBJ with the model and the training configuration. The classes for scikit-learn hold a Booster, and predict
 * with the iterations up to the best one of early stopping. Stateless.
 */
final class XgboostModels {
    static final String BACKEND = "xgboost";

    private static final String FILE = "model.ubj";

    private XgboostModels() {}

    static Estimator of(EstimatorAttributes f, BoosterLoader loader) {
        BoosterFile file = file(f);
        return switch (f.type()) {
            case "Booster", "XGBModel", "XGBRegressor", "XGBRanker", "XGBRFRegressor" ->
                new BoosterRegressor(f.type(), loader.load(file), LoadedBooster.DEFAULT);
            case "XGBClassifier", "XGBRFClassifier" -> classifier(f, loader.load(file));
            default -> throw UnsupportedModel.unsupported("estimator " + f.path() + " is not supported");
        };
    }

    static BoosterFile file(EstimatorAttributes f) {
        boolean plain = f.type().equals("Booster");
        EstimatorAttributes booster = plain ? f : new EstimatorAttributes(f.object("_Booster"));
        Object content = booster.required("handle");
        if (!(content instanceof byte[] bytes)) {
            throw booster.unsupported("handle");
        }
        XgboostSnapshot.check(f.path(), bytes);
        return new BoosterFile(
                f.path(),
                BACKEND,
                FILE,
                bytes,
                plain ? Map.of() : iterations(f, booster),
                f.number("missing", Double.NaN),
                XgboostSnapshot.categories(bytes),
                true);
    }

    /** Up to the best iteration: of the object in versions before 2, else as the model itself stores it. */
    private static Map<String, String> iterations(EstimatorAttributes f, EstimatorAttributes booster) {
        if (f.text("booster", "").equals("gblinear")) {
            return Map.of();
        }
        int best = booster.integer("best_iteration", -1);
        return Map.of("iteration_range", best >= 0 ? "0," + (best + 1) : "auto");
    }

    private static Estimator classifier(EstimatorAttributes f, LoadedBooster booster) {
        ClassLabels labels = labels(f);
        boolean margins = f.text("objective", "").equals("multi:softmax");
        int width = margins ? booster.width(LoadedBooster.MARGIN) : Math.max(1, booster.width(LoadedBooster.DEFAULT));
        if (width > 1 && labels.count() == 2) {
            // Several binary targets: their classes are the values 0 and 1 of all of them.
            return new TagClassifier(f.type(), booster, LoadedBooster.DEFAULT);
        }
        if (width != (labels.count() == 2 ? 1 : labels.count())) {
            throw UnsupportedModel.corrupt(
                    f.path() + " has " + labels.count() + " classes and " + width + " scores for a row");
        }
        return new BoosterClassifier(f.type(), booster, labels, margins, false, false);
    }

    /** The labels: of the label encoder that versions before 1.6 had, of {@code classes_}, or 0, 1, …. */
    private static ClassLabels labels(EstimatorAttributes f) {
        Object encoder = f.any("_le");
        @Nullable Object classes = encoder instanceof PyObject o ? new EstimatorAttributes(o).any("classes_") : f.any("classes_");
        if (classes instanceof NdArray array) {
            return ClassLabels.of(array);
        }
        return ClassLabels.upTo(Math.max(1, Math.min(1 << 16, f.integer("n_classes_", 2))));
    }
}
