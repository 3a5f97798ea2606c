// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Why a model answers as it does: Shapley values, local surrogates, permutations, counterfactuals. */
@NullMarked
package io.nereid.explain;

import org.jspecify.annotations.NullMarked;
