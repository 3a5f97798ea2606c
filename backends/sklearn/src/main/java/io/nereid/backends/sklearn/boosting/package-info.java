// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Models of XGBoost, LightGBM and CatBoost inside pickles: their native model is taken out of the pickle as data, and
 * computed by the backend of that library.
 */
@NullMarked
package io.nereid.backends.sklearn.boosting;

import org.jspecify.annotations.NullMarked;
