// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Rows of the results table about models of trees. */
@NullMarked
package io.nereid.bench.trees;

import org.jspecify.annotations.NullMarked;
