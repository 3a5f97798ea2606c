// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Embeddings of rows by their neighbours. */
@NullMarked
package io.nereid.backends.sklearn.manifold;

import org.jspecify.annotations.NullMarked;
