// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Models written in Java that run in the server's process: built-in ones, and those that a jar brings. */
@NullMarked
package io.nereid.backends.java;

import org.jspecify.annotations.NullMarked;
