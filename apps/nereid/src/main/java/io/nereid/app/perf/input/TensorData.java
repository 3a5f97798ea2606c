// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.input;

import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;

/**
 * An input of a request. Immutable, provided that callers do not write to the array.
 *
 * @param name the name of the model's input
 * @param dataType the type of its elements
 * @param shape the concrete shape, with the batch dimension where the model is batched
 * @param bytes the elements in row-major order, little-endian; of BYTES each with its length, 4 bytes, before it
 */
@SuppressWarnings("ArrayRecordComponent")
public record TensorData(String name, DataType dataType, Shape shape, byte[] bytes) {}
