// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Selection of columns by a model, as in scikit-learn's module {@code feature_selection}. */
@NullMarked
package io.nereid.backends.sklearn.featureselection;

import org.jspecify.annotations.NullMarked;
