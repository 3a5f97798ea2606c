// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Clustering (sklearn.cluster): the nearest of the learned centres. */
@NullMarked
package io.nereid.backends.sklearn.cluster;

import org.jspecify.annotations.NullMarked;
