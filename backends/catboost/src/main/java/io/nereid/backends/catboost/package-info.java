// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Scores models that CatBoost has written as JSON, without its library. */
@NullMarked
package io.nereid.backends.catboost;

import org.jspecify.annotations.NullMarked;
