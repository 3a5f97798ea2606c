// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Models written in Java: the interfaces that a model implements, and their execution by the server. */
@NullMarked
package io.nereid.backends.java;

import org.jspecify.annotations.NullMarked;
