// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Rows of the results table about many models, and about loads and unloads beside requests. */
@NullMarked
package io.nereid.bench.lifecycle;

import org.jspecify.annotations.NullMarked;
