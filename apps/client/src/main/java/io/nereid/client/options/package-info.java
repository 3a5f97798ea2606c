// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0

/** How a client connects and calls: retries, TLS, interceptors, the encoding of tensors. */
@NullMarked
package io.nereid.client.options;

import org.jspecify.annotations.NullMarked;
