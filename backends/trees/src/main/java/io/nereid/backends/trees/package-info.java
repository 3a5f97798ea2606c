// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Scores gradient-boosted trees and random forests that XGBoost and LightGBM have written, without their libraries. */
@NullMarked
package io.nereid.backends.trees;

import org.jspecify.annotations.NullMarked;
