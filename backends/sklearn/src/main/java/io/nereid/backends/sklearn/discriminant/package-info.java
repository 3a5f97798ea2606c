// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Discriminant analysis, as in scikit-learn's module {@code discriminant_analysis}. */
@NullMarked
package io.nereid.backends.sklearn.discriminant;

import org.jspecify.annotations.NullMarked;
