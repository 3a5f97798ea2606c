// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** HTTP/2: the connection and its streams, which carry HTTP exchanges and gRPC calls. */
@NullMarked
package io.nereid.transport.http2;

import org.jspecify.annotations.NullMarked;
