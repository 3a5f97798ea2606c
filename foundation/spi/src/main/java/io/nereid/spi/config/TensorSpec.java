// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import io.nereid.spi.ModelMetadata;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import org.jspecify.annotations.Nullable;

/**
 * The name, type and shape of a tensor that a model takes or returns. Immutable.
 *
 * @param name the tensor's name in the model
 * @param dataType the type of its elements
 * @param shape its dimensions as clients see them; -1 for a dimension of any size. Whether the batch dimension is
 *     included depends on the holder: {@link ModelConfig} excludes it where the model is batched,
 *     {@link ModelMetadata} includes it
 * @param optional whether a request may omit the tensor
 * @param ragged whether requests of different shapes may share a batch, which the model then receives as one flat
 *     tensor
 * @param reshape its dimensions as the model sees them, without the batch dimension, where they differ from
 *     {@code shape}; else null
 * @param unchecked whether the shape is only a hint and every shape is accepted; with no dimensions, the shape is
 *     unknown
 */
public record TensorSpec(
        String name,
        DataType dataType,
        Shape shape,
        boolean optional,
        boolean ragged,
        @Nullable Shape reshape,
        boolean unchecked) {
    /** A tensor whose shape is validated. */
    public TensorSpec(
            String name, DataType dataType, Shape shape, boolean optional, boolean ragged, @Nullable Shape reshape) {
        this(name, dataType, shape, optional, ragged, reshape, false);
    }

    /** A required tensor. */
    public TensorSpec(String name, DataType dataType, Shape shape) {
        this(name, dataType, shape, false);
    }

    /** A tensor that has the same shape for clients and for the model. */
    public TensorSpec(String name, DataType dataType, Shape shape, boolean optional) {
        this(name, dataType, shape, optional, false, null);
    }

    /** Its dimensions as the model sees them, without the batch dimension. */
    public Shape modelShape() {
        return reshape == null ? shape : reshape;
    }
}
