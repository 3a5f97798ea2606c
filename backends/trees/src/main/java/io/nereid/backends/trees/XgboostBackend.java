// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import java.util.List;

/**
 * Models of XGBoost, as JSON or UBJ: trees, dart and linear ones. One input of so many values as the model has features,
 * not a number for what is missing, and the output {@code predict}, as the library's {@code Booster.predict} gives it.
 * Further outputs are given where the configuration names them: {@code margin}, the sums before the objective's
 * function; {@code predict_proba}, a value for each class; {@code label}, the place of the likeliest class. Parameter:
 *
 * <ul>
 *   <li>{@code output_margin}: {@code true} to have the margin under the name {@code predict}
 * </ul>
 *
 * <p>The signature {@code shap} gives {@code contributions}: what each feature adds to each sum of a row, then the base
 * value, as the library's {@code pred_contribs} does, of shape [-1, features + 1], or [-1, outputs, features + 1] where
 * there are several outputs. They add up to the margin.
 *
 * <p>Thread-safe.
 */
public final class XgboostBackend extends TreesBackend {
    static final String NAME = "xgboost";

    /** The backend. */
    public XgboostBackend() {
        super(NAME, List.of("model.json", "model.ubj", "model.bst"));
    }
}
