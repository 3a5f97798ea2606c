// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The JSON reader and writer of the request path: strict, streaming, and without garbage per element. */
@NullMarked
package io.nereid.json;

import org.jspecify.annotations.NullMarked;
