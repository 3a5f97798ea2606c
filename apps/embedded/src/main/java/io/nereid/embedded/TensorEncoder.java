// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded;

import io.nereid.base.ServingException;
import io.nereid.base.SmallFloats;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.lang.reflect.Array;
import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Makes tensors of Java values, in the type that the model declares, as a JSON request would. Stateless.
 *
 * <p>Numbers are converted when the value stays what it is: a whole number goes into every numeric type that holds it, a
 * fraction only into floating point, where it is rounded.
 */
final class TensorEncoder {
    private TensorEncoder() {}

    /**
     * Makes a tensor, which the caller owns.
     *
     * @param value an array of any depth, a {@link List} of any depth, a buffer of numbers (its remaining elements), a
     *     single value, or a {@link Tensor}, of which a second reference is taken
     * @param shape its shape; null for that of the value
     * @throws ServingException INVALID_ARGUMENT for a value that does not fit the model's input
     */
    static Tensor encode(TensorSpec spec, Object value, long @Nullable [] shape) {
        if (value instanceof Tensor tensor) {
            return tensor.retainAs(spec.name(), shape == null ? fit(spec, tensor.shape()) : Shape.of(shape));
        }
        if (value instanceof Buffer buffer) {
            return buffer(spec, buffer, shape);
        }
        List<Integer> dims = new ArrayList<>(4);
        boolean bytes = spec.dataType() == DataType.BYTES;
        measure(value, bytes, dims);
        long[] own = dims.stream().mapToLong(Integer::longValue).toArray();
        Shape fitted;
        if (shape == null) {
            fitted = fit(spec, Shape.of(own));
        } else {
            fitted = Shape.of(shape);
            if (fitted.elementCount() != Shape.of(own).elementCount()) {
                throw wrong(spec, "a value of shape " + Shape.of(own), "as many elements as in " + fitted);
            }
        }
        if (bytes) {
            byte[][] elements = new byte[Math.toIntExact(fitted.elementCount())][];
            collect(spec, value, dims, 0, elements, 0);
            return Tensor.ofBytes(spec.name(), fitted, elements);
        }
        Tensor made = Tensor.allocate(spec.name(), spec.dataType(), fitted);
        try {
            write(spec, value, dims, 0, made.buffer());
            return made;
        } catch (RuntimeException e) {
            made.close();
            throw e;
        }
    }

    /** A row without its batch dimension is a batch of one; numbers in a row are a column where the model wants one. */
    private static Shape fit(TensorSpec spec, Shape own) {
        Shape wanted = spec.shape();
        if (wanted.rank() == 0 || own.rank() != wanted.rank() - 1 || wanted.accepts(own)) {
            return own;
        }
        Shape row = own.prepend(1);
        if (wanted.accepts(row)) {
            return row;
        }
        if (own.rank() == 1 && wanted.rank() == 2 && wanted.dim(1) == 1) {
            return Shape.of(own.dim(0), 1);
        }
        return own;
    }

    /** The dimensions by the first element at each depth; {@link #write} checks the others. */
    private static void measure(@Nullable Object value, boolean bytes, List<Integer> dims) {
        Object at = value;
        while (at != null && !isElement(at, bytes)) {
            int length = length(at);
            if (length < 0) {
                return;
            }
            dims.add(length);
            if (length == 0) {
                return;
            }
            if (at.getClass().isArray() && at.getClass().getComponentType().isPrimitive()) {
                return;
            }
            at = at instanceof List<?> list ? list.get(0) : Array.get(at, 0);
        }
    }

    private static boolean isElement(Object value, boolean bytes) {
        return bytes && value instanceof byte[];
    }

    private static int length(Object value) {
        return value instanceof List<?> list ? list.size() : value.getClass().isArray() ? Array.getLength(value) : -1;
    }

    private static Object element(Object of, int i) {
        Object element = of instanceof List<?> list ? list.get(i) : Array.get(of, i);
        if (element == null) {
            throw ServingException.invalidArgument("a value is null (expected: a number, a boolean or a text)");
        }
        return element;
    }

    private static void check(TensorSpec spec, Object value, List<Integer> dims, int depth) {
        int length = length(value);
        if (length != dims.get(depth)) {
            throw wrong(
                    spec,
                    length < 0 ? "a single value among arrays" : "rows of " + dims.get(depth) + " and of " + length,
                    "rows of one length");
        }
    }

    private static void write(TensorSpec spec, Object value, List<Integer> dims, int depth, ByteBuffer to) {
        if (depth == dims.size()) {
            number(spec, value, to);
            return;
        }
        check(spec, value, dims, depth);
        if (depth == dims.size() - 1 && block(spec, value, to)) {
            return;
        }
        int length = dims.get(depth);
        for (int i = 0; i < length; i++) {
            write(spec, element(value, i), dims, depth + 1, to);
        }
    }

    /** Copies an innermost array whose numbers need no check. */
    private static boolean block(TensorSpec spec, Object value, ByteBuffer to) {
        switch (spec.dataType()) {
            case FP32 -> {
                if (value instanceof float[] floats) {
                    to.asFloatBuffer().put(floats);
                    return moved(to, 4 * floats.length);
                }
                if (value instanceof double[] doubles) {
                    for (double d : doubles) {
                        to.putFloat((float) d);
                    }
                    return true;
                }
            }
            case FP64 -> {
                if (value instanceof double[] doubles) {
                    to.asDoubleBuffer().put(doubles);
                    return moved(to, 8 * doubles.length);
                }
                if (value instanceof float[] floats) {
                    for (float f : floats) {
                        to.putDouble(f);
                    }
                    return true;
                }
            }
            case INT64 -> {
                if (value instanceof long[] longs) {
                    to.asLongBuffer().put(longs);
                    return moved(to, 8 * longs.length);
                }
                if (value instanceof int[] ints) {
                    for (int i : ints) {
                        to.putLong(i);
                    }
                    return true;
                }
            }
            case INT32 -> {
                if (value instanceof int[] ints) {
                    to.asIntBuffer().put(ints);
                    return moved(to, 4 * ints.length);
                }
            }
            case UINT8, INT8 -> {
                // The bytes as they are: an image has values above 127.
                if (value instanceof byte[] bytes) {
                    to.put(bytes);
                    return true;
                }
            }
            default -> {}
        }
        return false;
    }

    private static boolean moved(ByteBuffer to, int bytes) {
        to.position(to.position() + bytes);
        return true;
    }

    private static Tensor buffer(TensorSpec spec, Buffer buffer, long @Nullable [] shape) {
        int count = buffer.remaining();
        Shape fitted = shape == null ? dimensions(spec, count) : Shape.of(shape);
        boolean raw = buffer instanceof ByteBuffer;
        long wanted = raw && spec.dataType().isFixedSize() ? fitted.byteSize(spec.dataType()) : fitted.elementCount();
        if (spec.dataType() == DataType.BYTES || wanted != count) {
            throw wrong(
                    spec,
                    "a buffer with " + count + (raw ? " bytes" : " elements"),
                    spec.dataType() == DataType.BYTES ? "texts" : wanted + " for " + spec.dataType() + fitted);
        }
        Tensor made = Tensor.allocate(spec.name(), spec.dataType(), fitted);
        try {
            ByteBuffer to = made.buffer();
            if (buffer instanceof ByteBuffer bytes) {
                to.put(bytes.duplicate());
            } else if (buffer instanceof FloatBuffer floats && spec.dataType() == DataType.FP32) {
                to.asFloatBuffer().put(floats.duplicate());
            } else if (buffer instanceof DoubleBuffer doubles && spec.dataType() == DataType.FP64) {
                to.asDoubleBuffer().put(doubles.duplicate());
            } else if (buffer instanceof LongBuffer longs && spec.dataType() == DataType.INT64) {
                to.asLongBuffer().put(longs.duplicate());
            } else if (buffer instanceof IntBuffer ints && spec.dataType() == DataType.INT32) {
                to.asIntBuffer().put(ints.duplicate());
            } else {
                Object copied = array(spec, buffer);
                write(spec, copied, List.of(count), 0, to);
            }
            return made;
        } catch (RuntimeException e) {
            made.close();
            throw e;
        }
    }

    private static Object array(TensorSpec spec, Buffer buffer) {
        if (buffer instanceof FloatBuffer floats) {
            float[] all = new float[floats.remaining()];
            floats.duplicate().get(all);
            return all;
        }
        if (buffer instanceof DoubleBuffer doubles) {
            double[] all = new double[doubles.remaining()];
            doubles.duplicate().get(all);
            return all;
        }
        if (buffer instanceof LongBuffer longs) {
            long[] all = new long[longs.remaining()];
            longs.duplicate().get(all);
            return all;
        }
        if (buffer instanceof IntBuffer ints) {
            int[] all = new int[ints.remaining()];
            ints.duplicate().get(all);
            return all;
        }
        throw wrong(
                spec, "a " + buffer.getClass().getSimpleName(), "a buffer of bytes, floats, doubles, ints or longs");
    }

    /** The shape of so many elements, where the model leaves one dimension open, or none. */
    private static Shape dimensions(TensorSpec spec, int count) {
        long[] dims = spec.shape().dims();
        int open = -1;
        long known = 1;
        for (int i = 0; i < dims.length; i++) {
            if (dims[i] >= 0) {
                known *= dims[i];
            } else if (open < 0) {
                open = i;
            } else {
                throw wrong(spec, "a buffer without a shape", "a shape, because the input is " + spec.shape());
            }
        }
        if (open >= 0 && known > 0) {
            dims[open] = count / known;
        }
        return Shape.of(dims);
    }

    private static void number(TensorSpec spec, Object value, ByteBuffer to) {
        DataType type = spec.dataType();
        if (type == DataType.BOOL) {
            if (!(value instanceof Boolean b)) {
                throw wrong(spec, shown(value), "a boolean");
            }
            to.put((byte) (b ? 1 : 0));
            return;
        }
        if (!(value instanceof Number n)) {
            throw wrong(spec, shown(value), "a number");
        }
        if (type.isFloatingPoint()) {
            double d = n.doubleValue();
            switch (type) {
                case FP64 -> to.putDouble(d);
                case FP32 -> to.putFloat((float) d);
                case FP16 -> to.putShort(SmallFloats.fp16(d));
                default -> to.putShort(SmallFloats.bf16(d));
            }
            return;
        }
        long whole = n.longValue();
        boolean fraction = n instanceof Float || n instanceof Double ? n.doubleValue() != whole : false;
        long low = switch (type) {
            case INT8 -> Byte.MIN_VALUE;
            case INT16 -> Short.MIN_VALUE;
            case INT32 -> Integer.MIN_VALUE;
            case INT64 -> Long.MIN_VALUE;
            default -> 0;
        };
        long high = switch (type) {
            case INT8 -> Byte.MAX_VALUE;
            case UINT8 -> 0xff;
            case INT16 -> Short.MAX_VALUE;
            case UINT16 -> 0xffff;
            case INT32 -> Integer.MAX_VALUE;
            case UINT32 -> 0xffff_ffffL;
            default -> Long.MAX_VALUE;
        };
        // A long holds the bits of a UINT64 above its own largest value.
        if (fraction || (type != DataType.UINT64 && (whole < low || whole > high))) {
            throw wrong(spec, shown(value), "a whole number from " + low + " to " + high);
        }
        switch (type.size()) {
            case 1 -> to.put((byte) whole);
            case 2 -> to.putShort((short) whole);
            case 4 -> to.putInt((int) whole);
            default -> to.putLong(whole);
        }
    }

    private static int collect(TensorSpec spec, Object value, List<Integer> dims, int depth, byte[][] to, int at) {
        if (depth == dims.size()) {
            if (value instanceof byte[] bytes) {
                to[at] = bytes;
            } else if (value instanceof CharSequence text) {
                to[at] = text.toString().getBytes(StandardCharsets.UTF_8);
            } else {
                throw wrong(spec, shown(value), "a text or bytes");
            }
            return at + 1;
        }
        check(spec, value, dims, depth);
        int next = at;
        for (int i = 0; i < dims.get(depth); i++) {
            next = collect(spec, element(value, i), dims, depth + 1, to, next);
        }
        return next;
    }

    private static String shown(Object value) {
        String text = value.getClass().isArray() ? Arrays.deepToString(new Object[] {value}) : value.toString();
        return (text.length() > 60 ? text.substring(0, 57) + "..." : text) + " ("
                + value.getClass().getSimpleName() + ")";
    }

    private static ServingException wrong(TensorSpec spec, String given, String expected) {
        return ServingException.invalidArgument("input '" + spec.name() + "' of type " + spec.dataType() + " and shape "
                + spec.shape() + " was given " + given + " (expected: " + expected + ")");
    }
}
