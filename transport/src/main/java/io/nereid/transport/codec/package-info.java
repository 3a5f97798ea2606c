// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** What all protocols share in handling bytes: content encodings, receive buffers, gathering writes. */
@NullMarked
package io.nereid.transport.codec;

import org.jspecify.annotations.NullMarked;
