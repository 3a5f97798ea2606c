// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import org.jspecify.annotations.Nullable;

/**
 * A tensor that a model takes or gives. Immutable.
 *
 * @param name its name in the model
 * @param dataType type of its elements
 * @param shape its dimensions as clients see them, -1 for any size
 * @param optional whether a request may leave it out
 * @param ragged whether requests of different shapes may share a batch; the model is then fed one flat tensor
 * @param reshape its dimensions as the model sees them, when they differ; without the batch dimension
 * @param unchecked whether the shape is a hint only and any other is taken; with no dimensions, nothing is known of it
 */
public record TensorSpec(
        String name,
        DataType dataType,
        Shape shape,
        boolean optional,
        boolean ragged,
        @Nullable Shape reshape,
        boolean unchecked) {
    /** A tensor whose shape is binding. */
    public TensorSpec(
            String name, DataType dataType, Shape shape, boolean optional, boolean ragged, @Nullable Shape reshape) {
        this(name, dataType, shape, optional, ragged, reshape, false);
    }

    /** A tensor that must be given. */
    public TensorSpec(String name, DataType dataType, Shape shape) {
        this(name, dataType, shape, false);
    }

    /** A tensor that clients and the model see alike. */
    public TensorSpec(String name, DataType dataType, Shape shape, boolean optional) {
        this(name, dataType, shape, optional, false, null);
    }

    /** Its dimensions as the model sees them, without the batch dimension. */
    public Shape modelShape() {
        return reshape == null ? shape : reshape;
    }
}
