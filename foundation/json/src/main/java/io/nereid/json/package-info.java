// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** JSON: the strict, streaming reader and writer of the request path, without garbage per element, and whole documents. */
@NullMarked
package io.nereid.json;

import org.jspecify.annotations.NullMarked;
