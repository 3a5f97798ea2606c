// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Decompositions of a matrix into components: how much of each a row has. */
@NullMarked
package io.nereid.backends.sklearn.decomposition;

import org.jspecify.annotations.NullMarked;
