// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Knows the formats that this server does not run, and says what they are and how their models can be served. */
@NullMarked
package io.nereid.backends.unsupported;

import org.jspecify.annotations.NullMarked;
