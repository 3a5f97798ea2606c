// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0

/** What the client needs of a protocol. */
@NullMarked
package io.nereid.client.protocol;

import org.jspecify.annotations.NullMarked;
