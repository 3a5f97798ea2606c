// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** HTTP/1.x: the request parser, the chunked decoder, the response encoder and the connection. */
@NullMarked
package io.nereid.transport.http1;

import org.jspecify.annotations.NullMarked;
