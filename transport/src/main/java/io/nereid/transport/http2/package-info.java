// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * HTTP/2: the connection and its streams, which carry HTTP exchanges and gRPC calls. Netty parses the frames;
 * {@link io.nereid.transport.http2.Http2ServerConnection} receives them.
 */
@NullMarked
package io.nereid.transport.http2;

import org.jspecify.annotations.NullMarked;
