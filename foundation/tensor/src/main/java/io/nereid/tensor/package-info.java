// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
/**
 * Tensors and the memory that holds them: data types, shapes, reference-counted regions, the byte budget. The shape of
 * a tensor includes the batch dimension where the model is batched.
 */
@NullMarked
package io.nereid.tensor;

import org.jspecify.annotations.NullMarked;
