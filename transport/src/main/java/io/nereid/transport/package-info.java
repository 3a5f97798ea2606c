// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The network layer: an HTTP/1.1, HTTP/2 and gRPC server on one port, and a client and reverse proxy. It serves routes
 * and gRPC methods and does not know models. This package holds what the others share: options, statistics, event
 * loops.
 */
@NullMarked
package io.nereid.transport;

import org.jspecify.annotations.NullMarked;
