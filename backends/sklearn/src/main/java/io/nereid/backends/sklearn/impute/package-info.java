// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Imputers that compute missing values from other columns or rows, as in scikit-learn's module {@code impute}. */
@NullMarked
package io.nereid.backends.sklearn.impute;

import org.jspecify.annotations.NullMarked;
