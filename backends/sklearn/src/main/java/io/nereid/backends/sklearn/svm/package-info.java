// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Support vector machines (sklearn.svm) with kernels, for classes, values and outliers. */
@NullMarked
package io.nereid.backends.sklearn.svm;

import org.jspecify.annotations.NullMarked;
