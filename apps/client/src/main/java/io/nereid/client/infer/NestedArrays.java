// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.infer;

import java.lang.reflect.Array;
import java.util.Arrays;

/** Flattens nested arrays into tensors. Stateless. */
final class NestedArrays {
    private NestedArrays() {}

    static InferTensor tensor(Object array, Class<?> type, long[] shape) {
        int count = Math.toIntExact(InferTensor.elementCount(shape));
        boolean supported = type == float.class
                || type == double.class
                || type == long.class
                || type == int.class
                || type == short.class
                || type == byte.class
                || type == boolean.class
                || type == String.class;
        if (shape.length == 0 || !supported) {
            throw new IllegalArgumentException("a tensor of " + array.getClass().getTypeName()
                    + " (expected: an array of boolean, byte, short, int, long, float, double or String, or of such"
                    + " arrays)");
        }
        Object flat = Array.newInstance(type, count);
        int end = copy(array, shape, 0, flat, 0);
        if (end != count) {
            throw new IllegalStateException("copied " + end + " of " + count + " elements");
        }
        if (flat instanceof float[] floats) {
            return InferTensor.of(floats, shape);
        } else if (flat instanceof double[] doubles) {
            return InferTensor.of(doubles, shape);
        } else if (flat instanceof long[] longs) {
            return InferTensor.of(longs, shape);
        } else if (flat instanceof int[] ints) {
            return InferTensor.of(ints, shape);
        } else if (flat instanceof boolean[] booleans) {
            return InferTensor.of(booleans, shape);
        } else if (flat instanceof String[] strings) {
            return InferTensor.ofStrings(strings, shape);
        } else if (flat instanceof byte[] bytes) {
            return InferTensor.raw(
                    TensorDataType.INT8,
                    InferTensor.allocate(1, count).put(bytes).flip(),
                    shape);
        }
        var data = InferTensor.allocate(2, count);
        data.asShortBuffer().put((short[]) flat);
        return InferTensor.raw(TensorDataType.INT16, data, shape);
    }

    private static int copy(Object array, long[] shape, int level, Object to, int at) {
        int length = Array.getLength(array);
        if (length != shape[level]) {
            throw new IllegalArgumentException("an array of " + length + " elements in dimension " + level
                    + ", but the first one there has " + shape[level] + ": " + Arrays.toString(shape)
                    + " (expected: rows of one length)");
        }
        if (level == shape.length - 1) {
            System.arraycopy(array, 0, to, at, length);
            return at + length;
        }
        int next = at;
        for (int i = 0; i < length; i++) {
            next = copy(Array.get(array, i), shape, level + 1, to, next);
        }
        return next;
    }
}
