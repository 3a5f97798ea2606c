// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Classifiers with a decision threshold of their own, as in scikit-learn's module {@code model_selection}. */
@NullMarked
package io.nereid.backends.sklearn.modelselection;

import org.jspecify.annotations.NullMarked;
