// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.trees.forest;

import io.nereid.tensor.DataType;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;

/** Reads feature values from an input tensor in place, as float or double. Confined to one run. */
public final class RowReader {
    private final DataType type;
    private final ByteBuffer bytes;
    private final FloatBuffer floats;
    private final DoubleBuffer doubles;
    private final int features;

    public RowReader(Tensor tensor, int features) {
        this.type = tensor.dataType();
        this.bytes = tensor.buffer();
        this.floats = bytes.asFloatBuffer();
        this.doubles = bytes.asDoubleBuffer();
        this.features = features;
    }

    /** Whether the input is FP32, so that {@link #single(int, int)} can be used. */
    boolean single() {
        return type == DataType.FP32;
    }

    /** A value of an FP32 input. */
    float single(int row, int feature) {
        return floats.get(row * features + feature);
    }

    public double value(int row, int feature) {
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
