// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorElements;
import java.lang.reflect.Array;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The values of one tensor in a {@link TensorMap}: a tensor of the server, or a flat Java array. Immutable as long as the
 * array is not changed. A tensor may be read only while its {@link Scope} is open, because the server releases its
 * memory afterwards.
 */
final class TensorValues {
    /** The tensor types for Java's element types. */
    private static final Map<Class<?>, DataType> TYPES = Map.of(
            float.class, DataType.FP32,
            double.class, DataType.FP64,
            long.class, DataType.INT64,
            int.class, DataType.INT32,
            short.class, DataType.INT16,
            byte.class, DataType.INT8,
            boolean.class, DataType.BOOL,
            String.class, DataType.BYTES);

    private static final Map<Class<?>, Class<?>> BOXES = Map.of(
            Float.class, float.class,
            Double.class, double.class,
            Long.class, long.class,
            Integer.class, int.class,
            Short.class, short.class,
            Byte.class, byte.class,
            Boolean.class, boolean.class,
            String.class, String.class);

    /** The time during which tensors may be read. Thread-safe. */
    static final class Scope {
        private volatile boolean over;

        void end() {
            over = true;
        }
    }

    private final DataType type;
    private final Shape shape;
    private final @Nullable Tensor tensor;
    private final @Nullable Scope scope;
    private final @Nullable Object array;

    private TensorValues(
            DataType type, Shape shape, @Nullable Tensor tensor, @Nullable Scope scope, @Nullable Object array) {
        this.type = type;
        this.shape = shape;
        this.tensor = tensor;
        this.scope = scope;
        this.array = array;
    }

    static TensorValues of(Tensor tensor, Scope scope) {
        return new TensorValues(tensor.dataType(), tensor.shape(), tensor, scope, null);
    }

    /**
     * Wraps an array of one or more dimensions, or a single value. Arrays of several dimensions are copied into a flat
     * one.
     */
    static TensorValues of(Object values) {
        Class<?> leaf = values.getClass();
        Class<?> box = BOXES.get(leaf);
        if (box != null) {
            Object one = Array.newInstance(box, 1);
            Array.set(one, 0, values);
            return of(one);
        }
        List<Long> dims = new ArrayList<>();
        Object inner = values;
        while (leaf.isArray()) {
            int length = inner == null ? 0 : Array.getLength(inner);
            dims.add((long) length);
            leaf = leaf.getComponentType();
            inner = length == 0 || leaf.isPrimitive() ? null : Array.get(java.util.Objects.requireNonNull(inner), 0);
        }
        DataType type = TYPES.get(leaf);
        if (dims.isEmpty() || type == null) {
            throw new IllegalArgumentException("a " + values.getClass().getSimpleName()
                    + " is not a tensor; expected an array of float, double, long, int, short, byte, boolean"
                    + " or String");
        }
        Shape shape = Shape.of(dims.stream().mapToLong(Long::longValue).toArray());
        if (dims.size() == 1) {
            return new TensorValues(type, shape, null, null, values);
        }
        Object flat = Array.newInstance(leaf, Math.toIntExact(shape.elementCount()));
        int filled = flatten(values, dims, 0, flat, 0);
        if (filled != Array.getLength(flat)) {
            throw new IllegalArgumentException("an array of shape " + shape + " has rows of different lengths");
        }
        return new TensorValues(type, shape, null, null, flat);
    }

    /** Copies a nested array in row-major order and checks that all rows have the same length. */
    private static int flatten(Object from, List<Long> dims, int dim, Object to, int at) {
        int length = Array.getLength(from);
        if (length != dims.get(dim)) {
            throw new IllegalArgumentException(
                    "an array has rows of different lengths, " + dims.get(dim) + " and " + length);
        }
        if (dim == dims.size() - 1) {
            System.arraycopy(from, 0, to, at, length);
            return at + length;
        }
        int next = at;
        for (int i = 0; i < length; i++) {
            next = flatten(Array.get(from, i), dims, dim + 1, to, next);
        }
        return next;
    }

    static TensorValues of(DataType type, Shape shape, Object values) {
        if (shape.isDynamic()) {
            throw new IllegalArgumentException("shape " + shape + " is not known");
        }
        Class<?> wanted = switch (type) {
            case BOOL -> boolean[].class;
            case UINT8, INT8 -> byte[].class;
            case UINT16, INT16, FP16, BF16 -> short[].class;
            case UINT32, INT32 -> int[].class;
            case UINT64, INT64 -> long[].class;
            case FP32 -> float[].class;
            case FP64 -> double[].class;
            case BYTES -> values instanceof String[] ? String[].class : byte[][].class;
        };
        if (!wanted.isInstance(values) || Array.getLength(values) != shape.elementCount()) {
            throw new IllegalArgumentException("a " + values.getClass().getSimpleName()
                    + (values.getClass().isArray() ? " of " + Array.getLength(values) : "") + " does not fit " + type
                    + shape
                    + "; expected a " + wanted.getSimpleName() + " of " + shape.elementCount());
        }
        return new TensorValues(type, shape, null, null, values);
    }

    DataType type() {
        return type;
    }

    Shape shape() {
        return shape;
    }

    // ---- reading ----

    private Tensor open(Tensor mine) {
        Scope s = scope;
        if (s != null && s.over) {
            throw new IllegalStateException(
                    "tensor '" + mine.name() + "' is valid only during the step that it was given for");
        }
        return mine;
    }

    ByteBuffer buffer() {
        Tensor mine = tensor;
        if (mine != null) {
            return open(mine).buffer();
        }
        ByteBuffer written = ByteBuffer.allocate(size()).order(ByteOrder.LITTLE_ENDIAN);
        write(written);
        return written;
    }

    private int count() {
        return (int) shape.elementCount();
    }

    float[] floats(String name) {
        if (array instanceof float[] own) {
            return own.clone();
        }
        return read(name, TensorElements::floats);
    }

    double[] doubles(String name) {
        return read(name, TensorElements::doubles);
    }

    long[] longs(String name) {
        return read(name, TensorElements::longs);
    }

    boolean[] booleans(String name) {
        return read(name, TensorElements::booleans);
    }

    byte[][] bytes(String name) {
        return read(name, TensorElements::bytes);
    }

    String[] texts(String name) {
        return read(name, TensorElements::strings);
    }

    private interface Reader<T> {
        T read(ByteBuffer from, DataType type, int count);
    }

    /** In a step that the client's request is passed to, an {@link IllegalArgumentException} is the client's error. */
    private <T> T read(String name, Reader<T> reader) {
        try {
            return reader.read(buffer(), type, count());
        } catch (ServingException e) {
            throw new IllegalArgumentException("tensor '" + name + "': " + e.getMessage(), e);
        }
    }

    // ---- writing ----

    /**
     * The values as a tensor that the caller owns. A tensor of the server is shared: its reference count grows by one.
     */
    Tensor tensor(String name) {
        Tensor mine = tensor;
        if (mine != null) {
            return open(mine).retainAs(name, shape);
        }
        if (type.isFixedSize()) {
            Tensor made = Tensor.allocate(name, type, shape);
            write(made.buffer());
            return made;
        }
        int size = size();
        MemoryRegion region = MemoryRegion.allocate(size);
        write(region.buffer(0, size).order(ByteOrder.LITTLE_ENDIAN));
        return Tensor.over(name, type, shape, region, 0, size);
    }

    private int size() {
        if (type.isFixedSize()) {
            return Math.toIntExact(shape.byteSize(type));
        }
        long size = 0;
        for (byte[] element : elements()) {
            size += 4L + element.length;
        }
        if (size > Integer.MAX_VALUE) {
            throw ServingException.invalidArgument("a tensor of BYTES takes " + size + " bytes, more than 2 GiB");
        }
        return (int) size;
    }

    private byte[][] elements() {
        if (array instanceof byte[][] raw) {
            return raw;
        }
        String[] texts = (String[]) java.util.Objects.requireNonNull(array);
        byte[][] all = new byte[texts.length][];
        for (int i = 0; i < texts.length; i++) {
            if (texts[i] == null) {
                throw new IllegalArgumentException("a text of a tensor is null");
            }
            all[i] = texts[i].getBytes(StandardCharsets.UTF_8);
        }
        return all;
    }

    private void write(ByteBuffer to) {
        if (array instanceof float[] values) {
            to.asFloatBuffer().put(values);
        } else if (array instanceof double[] values) {
            to.asDoubleBuffer().put(values);
        } else if (array instanceof long[] values) {
            to.asLongBuffer().put(values);
        } else if (array instanceof int[] values) {
            to.asIntBuffer().put(values);
        } else if (array instanceof short[] values) {
            to.asShortBuffer().put(values);
        } else if (array instanceof byte[] values) {
            to.duplicate().put(values);
        } else if (array instanceof boolean[] values) {
            for (int i = 0; i < values.length; i++) {
                to.put(i, (byte) (values[i] ? 1 : 0));
            }
        } else {
            ByteBuffer at = to.duplicate().order(ByteOrder.LITTLE_ENDIAN);
            for (byte[] element : elements()) {
                at.putInt(element.length).put(element);
            }
        }
    }
}
