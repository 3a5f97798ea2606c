// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Estimators of several outputs made of estimators of one (sklearn.multioutput). */
@NullMarked
package io.nereid.backends.sklearn.multioutput;

import org.jspecify.annotations.NullMarked;
