// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import io.nereid.base.ServingException;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A tensor of a signature, found in the graph. Immutable.
 *
 * @param name the name that clients use
 * @param tensor the name in the graph, {@code operation:output}
 * @param operation the address of the engine's operation, valid while the graph is
 * @param index which of the operation's outputs
 * @param dataType type of the elements
 * @param shape as the signature has it, -1 for any size; null when nothing is known
 * @param binding whether another shape is refused: the engine itself would take it
 * @param defaultValue a serialised TensorProto for when the input is left out, or null
 */
record Port(
        String name,
        String tensor,
        long operation,
        int index,
        DataType dataType,
        @Nullable Shape shape,
        boolean binding,
        byte @Nullable [] defaultValue) {
    /** The tensor of a name, or null. */
    static @Nullable Port named(List<Port> ports, String name) {
        for (Port port : ports) {
            if (port.name.equals(name)) {
                return port;
            }
        }
        return null;
    }

    static List<String> names(List<Port> ports) {
        return ports.stream().map(Port::name).toList();
    }

    /** Whether its first dimension may be any size, so that it may be that of a batch. */
    boolean batchable() {
        return binding && shape != null && shape.rank() > 0 && shape.dim(0) == -1;
    }

    /** As clients see it. */
    TensorSpec spec(boolean batched) {
        Shape seen = shape == null ? Shape.SCALAR : batched && shape.rank() > 0 ? shape.withoutFirst() : shape;
        return new TensorSpec(name, dataType, seen, defaultValue != null, false, null, !binding);
    }

    /** Refuses a tensor that this one is not. */
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
