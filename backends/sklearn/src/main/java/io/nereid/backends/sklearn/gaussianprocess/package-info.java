// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Gaussian processes: their covariance functions, and the mean or class that they predict. */
@NullMarked
package io.nereid.backends.sklearn.gaussianprocess;

import org.jspecify.annotations.NullMarked;
