// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn.pickle;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A numpy array as the file holds it: raw bytes, or a list of objects for dtype {@code object}. Elements are decoded on
 * access. Confined to the thread that reads the file; unchanged once its state is set.
 */
public final class NdArray {
    private int[] shape = {0};
    private DType type = DType.parse("f8");
    private boolean fortran;
    private byte[] raw = {};
    private @Nullable List<Object> objects;

    /** An array whose state follows, by {@link #build}. */
    NdArray() {}

    /** An array over raw bytes. */
    public NdArray(int[] shape, DType type, boolean fortran, byte[] raw) {
        set(shape, type, fortran, raw);
    }

    private void set(int[] newShape, DType newType, boolean newFortran, byte[] newRaw) {
        if (newType.size() == 0 && count(newShape) > 1 << 20) {
            throw UnsupportedModel.corrupt(
                    "an array of shape " + Arrays.toString(newShape) + " has elements of size 0");
        }
        long bytes = count(newShape) * newType.size();
        if (bytes != newRaw.length) {
            throw UnsupportedModel.corrupt("an array of shape " + Arrays.toString(newShape) + " and type " + newType
                    + " has " + newRaw.length + " bytes (expected: " + bytes + ")");
        }
        shape = newShape;
        type = newType;
        fortran = newFortran && newShape.length > 1;
        raw = newRaw;
        objects = null;
    }

    /** Sets the state that {@code ndarray.__reduce__} writes: (version, shape, dtype, Fortran order, data). */
    void build(Object value) {
        if (!(value instanceof PyTuple s) || s.size() < 5 || !(s.get(2) instanceof DType newType)) {
            throw UnsupportedModel.corrupt("an array has a malformed state");
        }
        int[] newShape = shape(s.get(1));
        if (s.get(4) instanceof PyList list) {
            if (count(newShape) != list.items().size()) {
                throw UnsupportedModel.corrupt("an array of shape " + Arrays.toString(newShape) + " has "
                        + list.items().size() + " objects");
            }
            shape = newShape;
            type = newType;
            objects = list.items();
        } else if (s.get(4) instanceof byte[] bytes && newType.kind() != 'O') {
            set(newShape, newType, Boolean.TRUE.equals(s.get(3)), bytes);
        } else {
            throw UnsupportedModel.corrupt("an array has malformed data");
        }
    }

    /**
     * Converts a Python tuple, or a single number, to a shape.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for another value, or a shape of 2^31 elements or more
     */
    static int[] shape(Object value) {
        if (value instanceof Long n) {
            return shape(new PyTuple(List.of(n)));
        }
        if (!(value instanceof PyTuple t) || t.size() > 32) {
            throw UnsupportedModel.corrupt("an array has a malformed shape");
        }
        int[] shape = new int[t.size()];
        for (int i = 0; i < shape.length; i++) {
            if (!(t.get(i) instanceof Long d) || d < 0 || d > Integer.MAX_VALUE) {
                throw UnsupportedModel.corrupt("an array has dimension " + t.get(i) + " (expected: 0 to 2^31)");
            }
            shape[i] = d.intValue();
        }
        count(shape);
        return shape;
    }

    static long count(int[] shape) {
        long n = 1;
        for (int d : shape) {
            n *= d;
            if (n > Integer.MAX_VALUE - 64) {
                throw UnsupportedModel.corrupt(
                        "an array of shape " + Arrays.toString(shape) + " is too large (expected: < 2^31 elements)");
            }
        }
        return n;
    }

    public int rank() {
        return shape.length;
    }

    public int dim(int i) {
        if (i >= shape.length) {
            throw UnsupportedModel.corrupt(
                    "an array has shape " + Arrays.toString(shape) + " (expected: more dimensions)");
        }
        return shape[i];
    }

    int[] shape() {
        return shape.clone();
    }

    public int count() {
        return (int) count(shape);
    }

    DType type() {
        return type;
    }

    public boolean isText() {
        if (type.kind() == 'U' || type.kind() == 'S') {
            return true;
        }
        return objects != null && !objects.isEmpty() && objects.stream().anyMatch(String.class::isInstance);
    }

    /** All elements as numbers, in C order. */
    public double[] doubles() {
        double[] values = new double[count()];
        List<Object> list = objects;
        if (list != null) {
            for (int i = 0; i < values.length; i++) {
                values[i] = PythonValues.number(list.get(i));
            }
            return values;
        }
        read(type, 0, values);
        return values;
    }

    /** One field of a structured array as numbers, in C order. */
    public double[] doubles(String field) {
        DType.Field f = type.field(field);
        if (f == null) {
            throw UnsupportedModel.unsupported(
                    "an array has the fields " + type.fieldNames() + " (expected: '" + field + "')");
        }
        double[] values = new double[count()];
        read(f.type(), f.offset(), values);
        return values;
    }

    public boolean hasField(String field) {
        return type.field(field) != null;
    }

    public int[] ints(String field) {
        return PythonValues.ints(doubles(field));
    }

    public int[] ints() {
        return PythonValues.ints(doubles());
    }

    private void read(DType of, int offset, double[] to) {
        if (!of.numeric()) {
            throw UnsupportedModel.unsupported("an array has type " + of + " (expected: numbers)");
        }
        ByteBuffer bytes = bytes(of);
        int stride = type.size();
        int[] index = new int[shape.length];
        for (int i = 0; i < to.length; i++) {
            int at = (fortran ? fortranIndex(index) : i) * stride + offset;
            to[i] = number(of, bytes, at);
        }
    }

    /**
     * Returns where the element at {@code index} lies in Fortran order, then advances {@code index} by one in C order.
     */
    private int fortranIndex(int[] index) {
        int at = 0;
        for (int d = shape.length - 1; d >= 0; d--) {
            at = at * shape[d] + index[d];
        }
        for (int d = shape.length - 1; d >= 0; d--) {
            if (++index[d] < shape[d]) {
                break;
            }
            index[d] = 0;
        }
        return at;
    }

    private ByteBuffer bytes(DType of) {
        return ByteBuffer.wrap(raw).order(of.bigEndian() ? ByteOrder.BIG_ENDIAN : ByteOrder.LITTLE_ENDIAN);
    }

    private static double number(DType of, ByteBuffer b, int at) {
        return switch (of.kind()) {
            case 'f' ->
                switch (of.size()) {
                    case 8 -> b.getDouble(at);
                    case 4 -> b.getFloat(at);
                    default -> half(b.getShort(at));
                };
            case 'u' ->
                switch (of.size()) {
                    case 8 -> unsigned(b.getLong(at));
                    case 4 -> b.getInt(at) & 0xffffffffL;
                    case 2 -> b.getShort(at) & 0xffff;
                    default -> b.get(at) & 0xff;
                };
            default -> integer(of, b, at);
        };
    }

    private static double unsigned(long v) {
        // Halved first, for a long above 2^63 is negative in Java; the lost lowest bit is below a double's precision.
        return v >= 0 ? v : (double) (v >>> 1) * 2;
    }

    private static long integer(DType of, ByteBuffer b, int at) {
        return switch (of.size()) {
            case 8 -> b.getLong(at);
            case 4 -> b.getInt(at);
            case 2 -> b.getShort(at);
            default -> b.get(at);
        };
    }

    /** IEEE 754 half precision: 5 bits of exponent, 10 of mantissa. */
    private static double half(short bits) {
        int exponent = bits >> 10 & 31;
        int mantissa = bits & 1023;
        double value = exponent == 0
                ? mantissa * 0x1p-24
                : exponent == 31
                        ? (mantissa == 0 ? Double.POSITIVE_INFINITY : Double.NaN)
                        : (1024 + mantissa) * Math.scalb(1.0, exponent - 25);
        return bits < 0 ? -value : value;
    }

    /** All elements in C order, as Long, Double, Boolean or String; of an object array, the objects themselves. */
    public Object[] values() {
        Object[] values = new Object[count()];
        List<Object> list = objects;
        if (list != null) {
            return list.toArray();
        }
        ByteBuffer bytes = bytes(type);
        int[] index = new int[shape.length];
        for (int i = 0; i < values.length; i++) {
            int at = (fortran ? fortranIndex(index) : i) * type.size();
            values[i] = value(bytes, at);
        }
        return values;
    }

    private Object value(ByteBuffer b, int at) {
        return switch (type.kind()) {
            case 'U' -> text(b, at);
            case 'S' -> new String(raw, at, length(at), StandardCharsets.UTF_8);
            default -> {
                if (!type.numeric()) {
                    throw UnsupportedModel.unsupported("an array has type " + type + " (expected: numbers or text)");
                }
                yield switch (type.kind()) {
                    case 'b' -> raw[at] != 0;
                    case 'i' -> integer(type, b, at);
                    case 'u' -> type.size() == 8 ? b.getLong(at) : (Object) (long) number(type, b, at);
                    default -> number(type, b, at);
                };
            }
        };
    }

    /** The length of a byte string: numpy pads with zero bytes. */
    private int length(int at) {
        int length = type.size();
        while (length > 0 && raw[at + length - 1] == 0) {
            length--;
        }
        return length;
    }

    private String text(ByteBuffer b, int at) {
        StringBuilder text = new StringBuilder();
        int length = type.size() / 4;
        while (length > 0 && b.getInt(at + 4 * (length - 1)) == 0) {
            length--;
        }
        for (int i = 0; i < length; i++) {
            int point = b.getInt(at + 4 * i);
            text.appendCodePoint(Character.isValidCodePoint(point) ? point : 0xfffd);
        }
        return text.toString();
    }
}
