// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Models of scikit-learn, read from pickle and joblib files as data and computed here; no code of the file is run. */
@NullMarked
package io.nereid.backends.sklearn;

import org.jspecify.annotations.NullMarked;
