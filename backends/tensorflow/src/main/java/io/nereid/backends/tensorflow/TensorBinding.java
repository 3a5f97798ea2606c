// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import io.nereid.base.ServingException;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * An input or output of a signature, bound to an operation of the graph. Immutable.
 *
 * @param name the name that clients use
 * @param tensor the name in the graph, {@code operation:output}
 * @param operation the native address of the operation, valid as long as the graph is open
 * @param index index among the operation's outputs
 * @param dataType type of the elements
 * @param shape the signature's shape, -1 for any size; null when the rank is unknown
 * @param binding whether tensors of other shapes are rejected. TensorFlow itself accepts any shape
 * @param defaultValue a serialised TensorProto that is used when the input is left out, or null
 */
record TensorBinding(
        String name,
        String tensor,
        long operation,
        int index,
        DataType dataType,
        @Nullable Shape shape,
        boolean binding,
        byte @Nullable [] defaultValue) {
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
        return binding && shape != null && shape.rank() > 0 && shape.dim(0) == -1;
    }

    /** The tensor as clients see it: without the batch dimension if the model is batched. */
    TensorSpec spec(boolean batched) {
        Shape seen = shape == null ? Shape.SCALAR : batched && shape.rank() > 0 ? shape.withoutFirst() : shape;
        return new TensorSpec(name, dataType, seen, defaultValue != null, false, null, !binding);
    }

    /** Rejects a tensor of another type or, where the shape is binding, of another shape. */
    void check(DataType given, Shape givenShape) {
        if (given != dataType) {
            throw ServingException.invalidArgument(
                    "input '" + name + "' is of type " + given + " (expected: " + dataType + ")");
        }
        if (binding && shape != null && !shape.accepts(givenShape)) {
            throw ServingException.invalidArgument(
                    "input '" + name + "' is of shape " + givenShape + " (expected: " + shape + ")");
        }
    }
}
