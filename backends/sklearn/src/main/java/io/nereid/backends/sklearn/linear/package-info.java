// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Linear models (sklearn.linear_model): regressions, logistic regression, perceptrons, SGD. */
@NullMarked
package io.nereid.backends.sklearn.linear;

import org.jspecify.annotations.NullMarked;
