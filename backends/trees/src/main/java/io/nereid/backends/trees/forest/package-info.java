// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Ensembles of decision trees in memory: as parsed, packed for fast scoring, and their SHAP values. */
@NullMarked
package io.nereid.backends.trees.forest;

import org.jspecify.annotations.NullMarked;
