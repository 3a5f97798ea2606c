// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The program: its command line, and the one class that composes the object graph. */
@NullMarked
package io.nereid.app;

import org.jspecify.annotations.NullMarked;
