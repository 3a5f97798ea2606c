// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The explanation methods: SHAP values, LIME, permutation importance and counterfactuals. */
@NullMarked
package io.nereid.explain.method;

import org.jspecify.annotations.NullMarked;
