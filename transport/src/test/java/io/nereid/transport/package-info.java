// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Tests of the transport, over real sockets wherever a socket is what matters. */
@NullMarked
package io.nereid.transport;

import org.jspecify.annotations.NullMarked;
