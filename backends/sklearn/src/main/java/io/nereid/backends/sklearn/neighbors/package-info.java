// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Nearest neighbours (sklearn.neighbors): classification, regression and outlier detection. */
@NullMarked
package io.nereid.backends.sklearn.neighbors;

import org.jspecify.annotations.NullMarked;
