// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Decision trees (sklearn.tree), alone and as members of ensembles. */
@NullMarked
package io.nereid.backends.sklearn.tree;

import org.jspecify.annotations.NullMarked;
