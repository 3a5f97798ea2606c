// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * The interface between protocols and transport: HTTP routes and exchanges, gRPC methods and calls, without sockets
 * and without models.
 */
@NullMarked
package io.nereid.transport.api;

import org.jspecify.annotations.NullMarked;
