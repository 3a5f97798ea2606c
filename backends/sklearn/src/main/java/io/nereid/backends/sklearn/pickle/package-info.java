// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Reads model files (pickle, joblib, skops) as plain data: nothing that a file names is loaded or called. */
@NullMarked
package io.nereid.backends.sklearn.pickle;

import org.jspecify.annotations.NullMarked;
