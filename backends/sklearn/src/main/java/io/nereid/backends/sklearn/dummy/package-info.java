// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Estimators that ignore their input (sklearn.dummy). */
@NullMarked
package io.nereid.backends.sklearn.dummy;

import org.jspecify.annotations.NullMarked;
