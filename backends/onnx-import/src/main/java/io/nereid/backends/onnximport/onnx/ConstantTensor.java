// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.onnx;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;

/**
 * A tensor whose value is known when the model is converted, such as a weight. Immutable.
 *
 * @param type the type of its elements
 * @param dims its shape
 * @param raw its elements, little-endian; empty for strings
 * @param strings its elements, for strings
 */
public record ConstantTensor(ElementType type, long[] dims, byte[] raw, List<byte[]> strings) {
    static ConstantTensor longs(long[] values) {
        ByteBuffer raw = ByteBuffer.allocate(values.length * 8).order(ByteOrder.LITTLE_ENDIAN);
        raw.asLongBuffer().put(values);
        return new ConstantTensor(ElementType.INT64, new long[] {values.length}, raw.array(), List.of());
    }

    public static ConstantTensor floats(long[] dims, float... values) {
        ByteBuffer raw = ByteBuffer.allocate(values.length * 4).order(ByteOrder.LITTLE_ENDIAN);
        raw.asFloatBuffer().put(values);
        return new ConstantTensor(ElementType.FLOAT, dims, raw.array(), List.of());
    }

    /** The values of an INT64 or INT32 tensor; empty for other types. */
    public long[] toLongs() {
        ByteBuffer in = ByteBuffer.wrap(raw).order(ByteOrder.LITTLE_ENDIAN);
        if (type == ElementType.INT64) {
            long[] values = new long[raw.length / 8];
            in.asLongBuffer().get(values);
            return values;
        }
        if (type == ElementType.INT32) {
            long[] values = new long[raw.length / 4];
            for (int i = 0; i < values.length; i++) {
                values[i] = in.getInt(i * 4);
            }
            return values;
        }
        return new long[0];
    }

    public long count() {
        long n = 1;
        for (long d : dims) {
            n *= d;
        }
        return n;
    }
}
