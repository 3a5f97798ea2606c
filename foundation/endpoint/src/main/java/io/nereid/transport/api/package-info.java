// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The seam between protocols and transport: routes, exchanges and calls. No sockets and no models here. */
@NullMarked
package io.nereid.transport.api;

import org.jspecify.annotations.NullMarked;
