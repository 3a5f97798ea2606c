// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config;

import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;

/**
 * One input of a warm-up request. Immutable.
 *
 * @param dataType the type of its elements
 * @param shape without the batch dimension
 * @param data the source of the bytes
 * @param file the file under {@code <model>/warmup}, for {@link Data#FILE}; else empty
 */
public record WarmupInput(DataType dataType, Shape shape, Data data, String file) {
    /** The source of the bytes. */
    public enum Data {
        /** Zeros. */
        ZERO,
        /** Random values from a fixed seed. */
        RANDOM,
        /** A file with the raw bytes of one row. */
        FILE
    }
}
