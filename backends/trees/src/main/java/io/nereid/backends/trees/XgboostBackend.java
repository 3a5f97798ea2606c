// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.backends.trees.forest.ParsedModel;
import java.util.List;

/**
 * Serves XGBoost models in JSON or UBJ: trees, dart and linear. A model has one input with a value for each feature,
 * NaN for missing values, and the output {@code predict}, equal to the library's {@code Booster.predict}. Further
 * outputs are available when the configuration names them: {@code margin}, the raw scores before the inverse link;
 * {@code predict_proba}, a value for each class; {@code label}, the index of the most probable class. Parameters:
 *
 * <ul>
 *   <li>{@code output_margin}: {@code true} to return the margin as {@code predict}
 *   <li>{@code iteration_range}: the boosting iterations to use: {@code best}, that of early stopping, {@code auto}, the same
 *       where the file has one and else all, as the package's classes for scikit-learn predict, or a range such as
 *       {@code 0,10}, of the first iteration and the one after the last; by default all
 * </ul>
 *
 * <p>The signature {@code shap} returns {@code contributions}, the SHAP values: the contribution of each feature to
 * each raw score of a row, then the base value, as the library's {@code pred_contribs}, of shape [-1, features + 1], or
 * [-1, outputs, features + 1] for several outputs. They add up to the margin.
 *
 * <p>For example, in {@code config.pbtxt}:
 *
 * <pre>{@code
 * backend: "xgboost"
 * parameters { key: "output_margin" value { string_value: "true" } }
 * }</pre>
 *
 * <p>Thread-safe: has no state.
 */
public final class XgboostBackend extends TreesBackend {
    static final String NAME = ParsedModel.XGBOOST;

    /** For {@link java.util.ServiceLoader}. */
    public XgboostBackend() {
        super(NAME, List.of("model.json", "model.ubj", "model.bst"));
    }
}
