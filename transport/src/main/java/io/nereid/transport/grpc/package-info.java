// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The gRPC wire format over HTTP/2: message framing, headers and status trailers. */
@NullMarked
package io.nereid.transport.grpc;

import org.jspecify.annotations.NullMarked;
