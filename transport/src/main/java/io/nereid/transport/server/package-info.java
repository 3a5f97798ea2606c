// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The listening server: its sockets, and how the protocol of a new connection is detected. */
@NullMarked
package io.nereid.transport.server;

import org.jspecify.annotations.NullMarked;
