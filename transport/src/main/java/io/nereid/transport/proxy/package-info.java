// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** The reverse proxy: pooled connections to upstream servers, and exchanges and gRPC calls forwarded over them. */
@NullMarked
package io.nereid.transport.proxy;

import org.jspecify.annotations.NullMarked;
