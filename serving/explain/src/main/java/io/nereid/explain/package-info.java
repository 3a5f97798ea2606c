// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Explanations of predictions: SHAP values, LIME, permutation importance and counterfactuals. */
@NullMarked
package io.nereid.explain;

import org.jspecify.annotations.NullMarked;
