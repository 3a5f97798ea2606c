// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Serves CatBoost models in the binary and JSON formats, without the native library. */
@NullMarked
package io.nereid.backends.catboost;

import org.jspecify.annotations.NullMarked;
