// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Serves gradient-boosted trees and random forests of XGBoost and LightGBM, without their native libraries. */
@NullMarked
package io.nereid.backends.trees;

import org.jspecify.annotations.NullMarked;
