// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The JSON reader and writer of the request path: written by hand, strict, and without garbage per element. */
@NullMarked
package io.nereid.json;

import org.jspecify.annotations.NullMarked;
