// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Outlier detection by a robust covariance. */
@NullMarked
package io.nereid.backends.sklearn.covariance;

import org.jspecify.annotations.NullMarked;
