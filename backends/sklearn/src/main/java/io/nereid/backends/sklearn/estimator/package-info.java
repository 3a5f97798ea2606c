// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * What all fitted estimators have in common: the predict methods, their attributes in the file, and the data they
 * take and return.
 */
@NullMarked
package io.nereid.backends.sklearn.estimator;

import org.jspecify.annotations.NullMarked;
