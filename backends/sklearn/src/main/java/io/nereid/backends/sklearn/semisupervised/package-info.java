// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Classifiers that were fitted to rows with and without labels. */
@NullMarked
package io.nereid.backends.sklearn.semisupervised;

import org.jspecify.annotations.NullMarked;
