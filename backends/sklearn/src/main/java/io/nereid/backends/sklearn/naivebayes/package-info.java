// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Naive Bayes classifiers (sklearn.naive_bayes). */
@NullMarked
package io.nereid.backends.sklearn.naivebayes;

import org.jspecify.annotations.NullMarked;
