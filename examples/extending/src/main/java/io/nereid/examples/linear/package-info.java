// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** A complete backend, small enough to read in one go: linear models from a text file. */
@NullMarked
package io.nereid.examples.linear;

import org.jspecify.annotations.NullMarked;
