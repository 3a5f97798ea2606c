// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Transformers of columns: scalers, encoders, imputers, discretizers, feature selection and decomposition. */
@NullMarked
package io.nereid.backends.sklearn.preprocessing;

import org.jspecify.annotations.NullMarked;
