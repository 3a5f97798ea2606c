// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Tensors over raw bytes, and the memory that clients share with the server: of the host, and of GPUs. */
@NullMarked
package io.nereid.protocols.v2.memory;

import org.jspecify.annotations.NullMarked;
