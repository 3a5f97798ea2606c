// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Regression by a function that only rises or only falls. */
@NullMarked
package io.nereid.backends.sklearn.isotonic;

import org.jspecify.annotations.NullMarked;
