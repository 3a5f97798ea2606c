// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.weights;

import java.nio.file.Path;
import java.util.List;

/**
 * Where a weight is in a file. Immutable.
 *
 * @param name its name in the checkpoint
 * @param file the file
 * @param type the type of its elements, which are little-endian and row-major
 * @param shape its dimensions
 * @param offset the position of its first byte in the file
 * @param bytes its length in bytes
 */
public record WeightTensor(String name, Path file, WeightType type, List<Long> shape, long offset, long bytes) {
    /** Creates a weight with its own copy of the shape. */
    public WeightTensor {
        shape = List.copyOf(shape);
    }
}
