// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** TLS of listening addresses: options, key material from PEM files, and its reload. */
@NullMarked
package io.nereid.transport.tls;

import org.jspecify.annotations.NullMarked;
