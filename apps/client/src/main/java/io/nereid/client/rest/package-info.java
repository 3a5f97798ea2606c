// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0

/** V2 and V1 over HTTP/1.1, on the HTTP client of the JDK. */
@NullMarked
package io.nereid.client.rest;

import org.jspecify.annotations.NullMarked;
