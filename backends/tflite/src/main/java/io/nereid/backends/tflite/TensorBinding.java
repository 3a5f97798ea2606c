// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An input or output of a signature. Immutable.
 *
 * @param name the name that clients use
 * @param dataType type of the elements
 * @param shape the shape in the file, -1 for any size
 * @param checked whether requests must have that shape; else the tensor is resized to what a request brings, as in
 *     TensorFlow Serving
 */
record TensorBinding(String name, DataType dataType, Shape shape, boolean checked) {
    TensorBinding(String name, DataType dataType, Shape shape) {
        this(name, dataType, shape, true);
    }

    /** The tensors with or without a check of their shapes. */
    static List<TensorBinding> checked(List<TensorBinding> ports, boolean check) {
        return ports.stream()
                .map(port -> new TensorBinding(port.name, port.dataType, port.shape, check))
                .toList();
    }

    /** Returns the tensor of this name, or null. */
    static @Nullable TensorBinding named(List<TensorBinding> ports, String name) {
        for (TensorBinding port : ports) {
            if (port.name.equals(name)) {
                return port;
            }
        }
        return null;
    }

    static List<String> names(List<TensorBinding> ports) {
        return ports.stream().map(TensorBinding::name).toList();
    }

    /** Whether its first dimension may have any size, so that it can be the batch dimension. */
    boolean batchable() {
        return shape.rank() > 0 && shape.dim(0) == -1;
    }

    /** The tensor as clients see it: without the batch dimension if the model is batched. */
    TensorSpec spec(boolean batched) {
        Shape seen = batched && shape.rank() > 0 ? shape.withoutFirst() : shape;
        return new TensorSpec(name, dataType, seen, false, false, null, !checked);
    }
}
