// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Sockets: HTTP/1.1, HTTP/2 and gRPC framing on one port. It knows routes and methods, no models. */
@NullMarked
package io.nereid.transport;

import org.jspecify.annotations.NullMarked;
