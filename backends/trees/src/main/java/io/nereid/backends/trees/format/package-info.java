// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Readers of the files of XGBoost (JSON, UBJ) and LightGBM (text). */
@NullMarked
package io.nereid.backends.trees.format;

import org.jspecify.annotations.NullMarked;
