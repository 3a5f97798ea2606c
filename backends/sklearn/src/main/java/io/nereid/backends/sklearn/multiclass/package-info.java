// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Classifiers for several classes made of binary ones (sklearn.multiclass). */
@NullMarked
package io.nereid.backends.sklearn.multiclass;

import org.jspecify.annotations.NullMarked;
