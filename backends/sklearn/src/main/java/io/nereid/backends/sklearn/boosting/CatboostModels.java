// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.boosting;

import io.nereid.backends.sklearn.estimator.ClassLabels;
import io.nereid.backends.sklearn.estimator.Classifier;
import io.nereid.backends.sklearn.estimator.DataTable;
import io.nereid.backends.sklearn.estimator.Estimator;
import io.nereid.backends.sklearn.estimator.EstimatorAttributes;
import io.nereid.backends.sklearn.pickle.UnsupportedModel;
import java.util.Map;

/**
 * The Python classes of CatBoost. Their state has the model in the library's binary format (CBM) under
 * {@code __model}. Stateless.
 */
final class CatboostModels {
    static final String BACKEND = "catboost";

    private static final String FILE = "model.cbm";
    private static final String PREDICT = "predict";
    private static final String PROBA = "predict_proba";

    private CatboostModels() {}

    static Estimator of(EstimatorAttributes f, BoosterLoader loader) {
        BoosterFile file = file(f);
        return switch (f.type()) {
            // The base class and the ranker return raw scores by default, whatever the loss function.
            case "CatBoost", "CatBoostRanker" ->
                new BoosterRegressor(f.type(), loader.load(file), LoadedBooster.MARGIN);
            case "CatBoostRegressor" -> new BoosterRegressor(f.type(), loader.load(file), PREDICT);
            case "CatBoostClassifier" -> classifier(f, loader.load(file));
            default -> throw UnsupportedModel.unsupported("estimator " + f.path() + " is not supported");
        };
    }

    static BoosterFile file(EstimatorAttributes f) {
        if (!(f.required("__model") instanceof byte[] bytes)) {
            throw f.unsupported("__model");
        }
        return new BoosterFile(f.path(), BACKEND, FILE, bytes, Map.of(), Double.NaN);
    }

    private static Estimator classifier(EstimatorAttributes f, LoadedBooster booster) {
        if (booster.width(PREDICT) > 0) {
            return new TagClassifier(f.type(), booster, PROBA);
        }
        if (booster.labels().isEmpty()) {
            throw UnsupportedModel.corrupt(f.path() + " has no classes");
        }
        return new Labelled(f.type(), booster, ClassLabels.of(booster.labels(), booster.type(PREDICT)));
    }

    /** A classifier whose native model has the labels, and the threshold of two classes. Immutable. */
    private static final class Labelled extends Classifier implements BoosterEstimator {
        private final LoadedBooster booster;

        Labelled(String type, LoadedBooster booster, ClassLabels labels) {
            super(type, booster.features(), labels);
            this.booster = booster;
        }

        @Override
        public LoadedBooster booster() {
            return booster;
        }

        @Override
        public boolean hasProba() {
            return true;
        }

        @Override
        public DataTable proba(DataTable table) {
            return booster.run(PROBA, table);
        }

        @Override
        public int[] classes(DataTable table) {
            DataTable predicted = booster.run(PREDICT, table);
            int[] classes = new int[predicted.rows()];
            for (int r = 0; r < classes.length; r++) {
                classes[r] = labels().indexOf(predicted.at(r, 0), predicted.text(r, 0));
            }
            return classes;
        }
    }
}
