// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.List;

/**
 * A tensor that the server creates for each batch. Immutable.
 *
 * @param kind the content of the tensor
 * @param targets the model's inputs that receive it
 * @param dataType INT32 or FP32
 * @param source the input that the tensor describes
 */
public record BatchInput(BatchInput.Kind kind, List<String> targets, DataType dataType, String source) {
    /** The content of a batch input; {@code n} is the number of requests in the batch. */
    public enum Kind {
        /** The number of elements of the source in each request: shape {@code [n]}. */
        ELEMENT_COUNT,
        /** The running sum of the element counts: shape {@code [n]}. */
        ACCUMULATED_ELEMENT_COUNT,
        /** The running sum of the element counts, with a leading 0: shape {@code [n + 1]}. */
        ACCUMULATED_ELEMENT_COUNT_WITH_ZERO,
        /** A tensor of unspecified content whose shape is {@code [greatest count]}. */
        MAX_ELEMENT_COUNT_AS_SHAPE,
        /** The source's shape without the batch dimension for each row: shape {@code [rows, rank]}. */
        ITEM_SHAPE,
        /** The same as ITEM_SHAPE in one dimension: shape {@code [rows * rank]}. */
        ITEM_SHAPE_FLATTEN
    }

    /** The dimensions that the model sees, without the first one. */
    Shape modelShape(List<TensorSpec> inputs) {
        if (kind != BatchInput.Kind.ITEM_SHAPE) {
            return Shape.SCALAR;
        }
        for (TensorSpec input : inputs) {
            if (input.name().equals(source)) {
                return Shape.of(input.shape().rank());
            }
        }
        return Shape.of(-1);
    }
}
