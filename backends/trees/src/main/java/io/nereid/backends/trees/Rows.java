// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees;

import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;

/** The rows of one run, in the memory they came in. Confined to one run. */
final class Rows {
    private final DataType type;
    private final ByteBuffer bytes;
    private final FloatBuffer floats;
    private final DoubleBuffer doubles;
    private final int features;

    Rows(Tensor tensor, int features) {
        this.type = tensor.dataType();
        this.bytes = tensor.buffer();
        this.floats = bytes.asFloatBuffer();
        this.doubles = bytes.asDoubleBuffer();
        this.features = features;
    }

    /** Whether values are floats as they stand. */
    boolean single() {
        return type == DataType.FP32;
    }

    /** For rows of floats. */
    float single(int row, int feature) {
        return floats.get(row * features + feature);
    }

    double value(int row, int feature) {
        int at = row * features + feature;
        switch (type) {
            case FP32:
                return floats.get(at);
            case FP64:
                return doubles.get(at);
            case INT64:
                return bytes.getLong(8 * at);
            case INT32:
                return bytes.getInt(4 * at);
            default:
                throw new IllegalStateException("type " + type);
        }
    }
}
