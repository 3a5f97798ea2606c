// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Projections of two sets of columns on what they have in common. */
@NullMarked
package io.nereid.backends.sklearn.crossdecomposition;

import org.jspecify.annotations.NullMarked;
