// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import io.nereid.base.ServingException;
import io.nereid.base.SmallFloats;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;

/**
 * Reads the elements of a tensor as Java arrays, which are copies. Stateless.
 *
 * <pre>{@code
 * float[] scores = TensorElements.floats(tensor.buffer(), tensor.dataType(), 10);
 * }</pre>
 *
 * <p>In all methods the buffer is little-endian, in row-major order, and begins at position 0 with the first element; its
 * position does not change.
 */
public final class TensorElements {
    private TensorElements() {}

    /**
     * The elements of a numeric type or BOOL, rounded to the nearest float.
     *
     * @param count number of elements
     * @throws ServingException INVALID_ARGUMENT for BYTES
     */
    public static float[] floats(ByteBuffer from, DataType type, int count) {
        float[] all = new float[count];
        switch (type) {
            case FP32 -> from.duplicate().order(from.order()).asFloatBuffer().get(all);
            case BYTES -> throw wrong(type, "numbers");
            default -> {
                for (int i = 0; i < count; i++) {
                    all[i] = (float) number(from, type, i);
                }
            }
        }
        return all;
    }

    /**
     * The elements of a numeric type or BOOL. A UINT64 is rounded to the nearest double.
     *
     * @param count number of elements
     * @throws ServingException INVALID_ARGUMENT for BYTES
     */
    public static double[] doubles(ByteBuffer from, DataType type, int count) {
        double[] all = new double[count];
        switch (type) {
            case FP64 -> from.duplicate().order(from.order()).asDoubleBuffer().get(all);
            case BYTES -> throw wrong(type, "numbers");
            default -> {
                for (int i = 0; i < count; i++) {
                    all[i] = number(from, type, i);
                }
            }
        }
        return all;
    }

    /**
     * The elements of an integer type. A UINT64 above {@link Long#MAX_VALUE} becomes negative.
     *
     * @param count number of elements
     * @throws ServingException INVALID_ARGUMENT for another type
     */
    public static long[] longs(ByteBuffer from, DataType type, int count) {
        if (!type.isInteger()) {
            throw wrong(type, "whole numbers");
        }
        long[] all = new long[count];
        for (int i = 0; i < count; i++) {
            all[i] = whole(from, type, i);
        }
        return all;
    }

    /**
     * The elements of BOOL.
     *
     * @param count number of elements
     * @throws ServingException INVALID_ARGUMENT for another type
     */
    public static boolean[] booleans(ByteBuffer from, DataType type, int count) {
        if (type != DataType.BOOL) {
            throw wrong(type, "truth values (BOOL)");
        }
        boolean[] all = new boolean[count];
        for (int i = 0; i < count; i++) {
            all[i] = from.get(i) != 0;
        }
        return all;
    }

    /**
     * The elements of BYTES.
     *
     * @param count number of elements
     * @throws ServingException INVALID_ARGUMENT for another type, and for bytes that end within an element
     */
    public static byte[][] bytes(ByteBuffer from, DataType type, int count) {
        if (type != DataType.BYTES) {
            throw wrong(type, "BYTES");
        }
        ByteBuffer at = from.duplicate().order(from.order());
        byte[][] all = new byte[count][];
        for (int i = 0; i < count; i++) {
            int length = at.remaining() < Integer.BYTES ? -1 : at.getInt();
            if (length < 0 || length > at.remaining()) {
                throw ServingException.invalidArgument("the bytes of the tensor end within its element " + i);
            }
            all[i] = new byte[length];
            at.get(all[i]);
        }
        return all;
    }

    /**
     * The elements of BYTES as UTF-8.
     *
     * @param count number of elements
     * @throws ServingException as {@link #bytes}
     */
    public static String[] strings(ByteBuffer from, DataType type, int count) {
        byte[][] raw = bytes(from, type, count);
        String[] all = new String[count];
        for (int i = 0; i < count; i++) {
            all[i] = new String(raw[i], StandardCharsets.UTF_8);
        }
        return all;
    }

    private static ServingException wrong(DataType type, String expected) {
        return ServingException.invalidArgument("the tensor is of type " + type + " (expected: " + expected + ")");
    }

    private static double number(ByteBuffer from, DataType type, int i) {
        return switch (type) {
            case FP32 -> from.getFloat(4 * i);
            case FP64 -> from.getDouble(8 * i);
            case FP16 -> SmallFloats.fp16ToFloat(from.getShort(2 * i));
            case BF16 -> SmallFloats.bf16ToFloat(from.getShort(2 * i));
            case UINT64 -> unsigned(from.getLong(8 * i));
            default -> whole(from, type, i);
        };
    }

    /** An unsigned long as a double: halved with the lowest bit kept for correct rounding, then doubled. */
    private static double unsigned(long bits) {
        return bits >= 0 ? bits : ((bits >>> 1) | (bits & 1)) * 2.0;
    }

    private static long whole(ByteBuffer from, DataType type, int i) {
        return switch (type) {
            case BOOL, INT8 -> from.get(i);
            case UINT8 -> from.get(i) & 0xffL;
            case INT16 -> from.getShort(2 * i);
            case UINT16 -> from.getShort(2 * i) & 0xffffL;
            case INT32 -> from.getInt(4 * i);
            case UINT32 -> from.getInt(4 * i) & 0xffff_ffffL;
            default -> from.getLong(8 * i);
        };
    }
}
