// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** A complete API: one route that takes and returns comma-separated values. */
@NullMarked
package io.nereid.examples.csv;

import org.jspecify.annotations.NullMarked;
