// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Composite estimators: pipelines, feature unions and column transformers. */
@NullMarked
package io.nereid.backends.sklearn.compose;

import org.jspecify.annotations.NullMarked;
