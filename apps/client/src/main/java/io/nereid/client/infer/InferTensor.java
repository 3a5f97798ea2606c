// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.infer;

import io.nereid.base.SmallFloats;
import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * A tensor: data type, shape, and elements in row-major order. The shape of the factories' last parameter may be left
 * out, which is one dimension. Immutable and thread-safe; factories copy what they are given, except
 * {@link #raw(TensorDataType, ByteBuffer, long...)}.
 *
 * <pre>{@code
 * InferTensor row = InferTensor.of(new float[] {5.1f, 3.5f, 1.4f, 0.2f}, 1, 4);
 * InferTensor texts = InferTensor.ofStrings(new String[] {"first", "second"});
 * InferTensor image = InferTensor.raw(TensorDataType.UINT8, ByteBuffer.wrap(pixels), 224, 224, 3);
 * }</pre>
 */
public final class InferTensor {
    private final TensorDataType dataType;
    private final long[] shape;
    private final ByteBuffer data;
    private final int count;

    private InferTensor(TensorDataType dataType, long[] shape, ByteBuffer data, int count) {
        this.dataType = dataType;
        this.shape = shape;
        this.data = data;
        this.count = count;
    }

    /** An FP32 tensor. */
    public static InferTensor of(float[] elements, long... shape) {
        ByteBuffer data = allocate(4, elements.length);
        data.asFloatBuffer().put(elements);
        return checked(TensorDataType.FP32, data, elements.length, shape);
    }

    /** An FP32 tensor of the remaining elements of a buffer, whose position does not change. */
    public static InferTensor of(FloatBuffer elements, long... shape) {
        ByteBuffer data = allocate(4, elements.remaining());
        data.asFloatBuffer().put(elements.duplicate());
        return checked(TensorDataType.FP32, data, elements.remaining(), shape);
    }

    /** An FP64 tensor. */
    public static InferTensor of(double[] elements, long... shape) {
        ByteBuffer data = allocate(8, elements.length);
        data.asDoubleBuffer().put(DoubleBuffer.wrap(elements));
        return checked(TensorDataType.FP64, data, elements.length, shape);
    }

    /** An INT64 tensor. */
    public static InferTensor of(long[] elements, long... shape) {
        ByteBuffer data = allocate(8, elements.length);
        data.asLongBuffer().put(LongBuffer.wrap(elements));
        return checked(TensorDataType.INT64, data, elements.length, shape);
    }

    /** An INT32 tensor. */
    public static InferTensor of(int[] elements, long... shape) {
        ByteBuffer data = allocate(4, elements.length);
        data.asIntBuffer().put(IntBuffer.wrap(elements));
        return checked(TensorDataType.INT32, data, elements.length, shape);
    }

    /** A BOOL tensor. */
    public static InferTensor of(boolean[] elements, long... shape) {
        ByteBuffer data = allocate(1, elements.length);
        for (int i = 0; i < elements.length; i++) {
            data.put(i, (byte) (elements[i] ? 1 : 0));
        }
        return checked(TensorDataType.BOOL, data, elements.length, shape);
    }

    /** An FP16 tensor; the values are rounded to it. */
    public static InferTensor ofHalf(float[] elements, long... shape) {
        ByteBuffer data = allocate(2, elements.length);
        for (int i = 0; i < elements.length; i++) {
            data.putShort(2 * i, SmallFloats.fp16(elements[i]));
        }
        return checked(TensorDataType.FP16, data, elements.length, shape);
    }

    /** A BF16 tensor; the values are rounded to it. */
    public static InferTensor ofBrainFloat(float[] elements, long... shape) {
        ByteBuffer data = allocate(2, elements.length);
        for (int i = 0; i < elements.length; i++) {
            data.putShort(2 * i, SmallFloats.bf16(elements[i]));
        }
        return checked(TensorDataType.BF16, data, elements.length, shape);
    }

    /** A BYTES tensor of texts in UTF-8. */
    public static InferTensor ofStrings(String[] elements, long... shape) {
        byte[][] bytes = new byte[elements.length][];
        for (int i = 0; i < elements.length; i++) {
            bytes[i] = elements[i].getBytes(StandardCharsets.UTF_8);
        }
        return ofBytes(bytes, shape);
    }

    /** A BYTES tensor. */
    public static InferTensor ofBytes(byte[][] elements, long... shape) {
        long length = 0;
        for (byte[] element : elements) {
            length += 4L + element.length;
        }
        if (length > Integer.MAX_VALUE - 16) {
            throw new IllegalArgumentException("elements of " + length + " bytes together (expected: less than 2 GiB)");
        }
        ByteBuffer data = ByteBuffer.allocate((int) length).order(ByteOrder.LITTLE_ENDIAN);
        for (byte[] element : elements) {
            data.putInt(element.length).put(element);
        }
        return checked(TensorDataType.BYTES, data.flip(), elements.length, shape);
    }

    /**
     * A tensor of rows: an array of arrays of {@code boolean}, {@code byte} (INT8), {@code short} (INT16), {@code int},
     * {@code long}, {@code float}, {@code double} or {@link String}, nested to any depth. All rows of a level have one
     * length.
     *
     * <pre>{@code
     * InferTensor rows = InferTensor.ofArray(new float[][] {{5.1f, 3.5f, 1.4f, 0.2f}, {6.7f, 3.1f, 4.4f, 1.4f}});   // FP32[2,4]
     * }</pre>
     *
     * @throws IllegalArgumentException for rows of different lengths, and for what is not such an array
     */
    public static InferTensor ofArray(Object array) {
        List<Long> dims = new ArrayList<>();
        Class<?> type = array.getClass();
        Object first = array;
        boolean known = true;
        while (type.isArray()) {
            int length = known ? Array.getLength(first) : 0;
            dims.add((long) length);
            type = type.getComponentType();
            known = length > 0;
            if (known && type.isArray()) {
                first = Array.get(first, 0);
            }
        }
        long[] shape = dims.stream().mapToLong(d -> d).toArray();
        return NestedArrays.tensor(array, type, shape);
    }

    /**
     * A tensor over bytes as they are on the wire: little-endian, BOOL one byte each, BYTES with a length of four bytes
     * before each element. The remaining bytes of the buffer are used without a copy, so the caller must not change them
     * while calls are in progress.
     *
     * @throws IllegalArgumentException when the number of bytes does not fit type and shape
     */
    public static InferTensor raw(TensorDataType type, ByteBuffer bytes, long... shape) {
        ByteBuffer data = bytes.slice().order(ByteOrder.LITTLE_ENDIAN);
        long expected = elementCount(shape);
        if (type == TensorDataType.BYTES) {
            int count = countBytes(data);
            if (count != expected) {
                throw new IllegalArgumentException("the data has " + count + " elements (expected: " + expected
                        + ", of shape " + text(shape) + ")");
            }
            return new InferTensor(type, shape.clone(), data, count);
        }
        if (data.remaining() != expected * type.size()) {
            throw new IllegalArgumentException("the data has " + data.remaining() + " bytes (expected: "
                    + expected * type.size() + ", of " + type + text(shape) + ")");
        }
        return new InferTensor(type, shape.clone(), data, (int) expected);
    }

    private static int countBytes(ByteBuffer data) {
        int count = 0;
        int at = 0;
        while (at < data.limit()) {
            int length = data.limit() - at < 4 ? -1 : data.getInt(at);
            if (length < 0 || length > data.limit() - at - 4) {
                throw new IllegalArgumentException("element " + count + " of the BYTES data ends after the data");
            }
            at += 4 + length;
            count++;
        }
        return count;
    }

    static ByteBuffer allocate(int size, long count) {
        if (count * size > Integer.MAX_VALUE - 16) {
            throw new IllegalArgumentException(count + " elements of " + size + " bytes (expected: less than 2 GiB)");
        }
        return ByteBuffer.allocate((int) count * size).order(ByteOrder.LITTLE_ENDIAN);
    }

    private static InferTensor checked(TensorDataType type, ByteBuffer data, int count, long[] shape) {
        long[] dims = shape.length == 0 ? new long[] {count} : shape.clone();
        if (elementCount(dims) != count) {
            throw new IllegalArgumentException(
                    "shape " + text(dims) + " has " + elementCount(dims) + " elements, but " + count + " are given");
        }
        return new InferTensor(type, dims, data, count);
    }

    /** The number of elements of a shape. */
    static long elementCount(long[] shape) {
        long count = 1;
        for (long dim : shape) {
            if (dim < 0) {
                throw new IllegalArgumentException("shape " + text(shape) + " has a negative dimension");
            }
            count = Math.multiplyExact(count, dim);
        }
        return count;
    }

    private static String text(long[] shape) {
        return Arrays.toString(shape).replace(" ", "");
    }

    public TensorDataType dataType() {
        return dataType;
    }

    /** A copy of the dimensions; empty for a scalar. */
    public long[] shape() {
        return shape.clone();
    }

    public int elementCount() {
        return count;
    }

    /** The bytes as they are on the wire, see {@link #raw}; little-endian and read-only. */
    public ByteBuffer bytes() {
        return data.asReadOnlyBuffer().order(ByteOrder.LITTLE_ENDIAN);
    }

    /**
     * The elements as FP32. FP64 and integers are rounded to the nearest.
     *
     * @throws IllegalStateException for BYTES
     */
    public float[] asFloats() {
        float[] floats = new float[count];
        if (dataType == TensorDataType.FP32) {
            bytes().asFloatBuffer().get(floats);
            return floats;
        }
        for (int i = 0; i < count; i++) {
            floats[i] =
                    dataType.isFloat() || dataType == TensorDataType.UINT64 ? (float) number(i) : (float) integer(i);
        }
        return floats;
    }

    /**
     * The elements as FP64. Integers of more than 53 bits are rounded to the nearest.
     *
     * @throws IllegalStateException for BYTES
     */
    public double[] asDoubles() {
        double[] doubles = new double[count];
        for (int i = 0; i < count; i++) {
            doubles[i] = number(i);
        }
        return doubles;
    }

    /**
     * The elements of an integer or BOOL tensor. UINT64 beyond 2<sup>63</sup> is negative, as with
     * {@link Long#toUnsignedString(long)}.
     *
     * @throws IllegalStateException for floating-point types and BYTES
     */
    public long[] asLongs() {
        long[] longs = new long[count];
        for (int i = 0; i < count; i++) {
            longs[i] = integer(i);
        }
        return longs;
    }

    /**
     * The elements of an integer or BOOL tensor.
     *
     * @throws ArithmeticException for an element that does not fit
     * @throws IllegalStateException for floating-point types and BYTES
     */
    public int[] asInts() {
        int[] ints = new int[count];
        for (int i = 0; i < count; i++) {
            long value = integer(i);
            if (dataType == TensorDataType.UINT64 && value < 0) {
                throw new ArithmeticException(
                        "element " + i + ", " + Long.toUnsignedString(value) + ", does not fit an int");
            }
            ints[i] = Math.toIntExact(value);
        }
        return ints;
    }

    /**
     * The elements of a BOOL tensor.
     *
     * @throws IllegalStateException for other types
     */
    public boolean[] asBooleans() {
        require(dataType == TensorDataType.BOOL, "asBooleans");
        boolean[] booleans = new boolean[count];
        for (int i = 0; i < count; i++) {
            booleans[i] = data.get(i) != 0;
        }
        return booleans;
    }

    /**
     * The elements of a BYTES tensor as texts. Malformed UTF-8 becomes U+FFFD.
     *
     * @throws IllegalStateException for other types
     */
    public String[] asStrings() {
        byte[][] bytes = asByteArrays();
        String[] strings = new String[count];
        for (int i = 0; i < count; i++) {
            strings[i] = new String(bytes[i], StandardCharsets.UTF_8);
        }
        return strings;
    }

    /**
     * The elements of a BYTES tensor.
     *
     * @throws IllegalStateException for other types
     */
    public byte[][] asByteArrays() {
        require(dataType == TensorDataType.BYTES, "asByteArrays and asStrings");
        byte[][] elements = new byte[count][];
        int at = 0;
        for (int i = 0; i < count; i++) {
            byte[] element = new byte[data.getInt(at)];
            data.get(at + 4, element);
            elements[i] = element;
            at += 4 + element.length;
        }
        return elements;
    }

    private void require(boolean condition, String method) {
        if (!condition) {
            throw new IllegalStateException(
                    method + " of a tensor of " + dataType + " (expected: another type, or bytes())");
        }
    }

    private double number(int i) {
        return switch (dataType) {
            case FP16 -> SmallFloats.fp16ToFloat(data.getShort(2 * i));
            case BF16 -> SmallFloats.bf16ToFloat(data.getShort(2 * i));
            case FP32 -> data.getFloat(4 * i);
            case FP64 -> data.getDouble(8 * i);
            case UINT64 -> {
                long bits = data.getLong(8 * i);
                // the halves are exact, and their sum rounds once
                yield (bits >>> 32) * 0x1p32 + (bits & 0xFFFF_FFFFL);
            }
            default -> integer(i);
        };
    }

    private long integer(int i) {
        require(!dataType.isFloat() && dataType != TensorDataType.BYTES, "an integer");
        return switch (dataType) {
            case BOOL, UINT8 -> data.get(i) & 0xFF;
            case INT8 -> data.get(i);
            case UINT16 -> data.getShort(2 * i) & 0xFFFF;
            case INT16 -> data.getShort(2 * i);
            case UINT32 -> data.getInt(4 * i) & 0xFFFF_FFFFL;
            case INT32 -> data.getInt(4 * i);
            default -> data.getLong(8 * i);
        };
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof InferTensor t
                && dataType == t.dataType
                && Arrays.equals(shape, t.shape)
                && data.equals(t.data);
    }

    @Override
    public int hashCode() {
        return 31 * (31 * dataType.hashCode() + Arrays.hashCode(shape)) + data.hashCode();
    }

    /** Type and shape, such as {@code FP32[1,4]}. */
    @Override
    public String toString() {
        return dataType + text(shape);
    }
}
