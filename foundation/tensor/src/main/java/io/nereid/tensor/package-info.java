// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/** Bytes and who frees them: data types, shapes, tensors, memory regions, the byte budget. */
@NullMarked
package io.nereid.tensor;

import org.jspecify.annotations.NullMarked;
