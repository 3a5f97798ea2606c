// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Kernel functions between rows, and the estimators that are sums or projections of them. */
@NullMarked
package io.nereid.backends.sklearn.kernel;

import org.jspecify.annotations.NullMarked;
