// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Mixtures of distributions, as in scikit-learn's module {@code mixture}. */
@NullMarked
package io.nereid.backends.sklearn.mixture;

import org.jspecify.annotations.NullMarked;
