// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import io.nereid.spi.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A tensor that a signature takes or gives. Immutable.
 *
 * @param name the name that clients use
 * @param dataType type of the elements
 * @param shape as the file has it, -1 for any size
 */
record Port(String name, DataType dataType, Shape shape) {
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
        return shape.rank() > 0 && shape.dim(0) == -1;
    }

    /** As clients see it. */
    TensorSpec spec(boolean batched) {
        return new TensorSpec(name, dataType, batched && shape.rank() > 0 ? shape.withoutFirst() : shape);
    }
}
