// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Serves scikit-learn models: loads pickle, joblib and skops files as data, without running code of the file, and
 * computes the estimators in Java.
 */
@NullMarked
package io.nereid.backends.sklearn;

import org.jspecify.annotations.NullMarked;
