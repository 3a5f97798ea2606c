// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.mlflow;

import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Converts tensors between data types, and joins columns to a matrix. Stateless. */
final class TensorConversion {
    private TensorConversion() {}

    /**
     * Whether values can be converted without loss of range: to any floating-point type, or to an integer type as
     * large.
     */
    static boolean possible(DataType from, DataType to) {
        if (from == to) {
            return true;
        }
        boolean plain = from != DataType.BYTES
                && to != DataType.BYTES
                && from != DataType.FP16
                && from != DataType.BF16
                && to != DataType.FP16
                && to != DataType.BF16;
        return plain && (to.isFloatingPoint() || (!from.isFloatingPoint() && to.size() >= from.size()));
    }

    /** Converts a tensor to another type; the caller owns the result. */
    static Tensor to(DataType type, Tensor from, String name, Shape shape) {
        if (from.dataType() == type) {
            return from.retainAs(name, shape);
        }
        Tensor tensor = Tensor.allocate(name, type, shape);
        write(tensor, from, 0, 1, (int) shape.elementCount());
        return tensor;
    }

    /**
     * Joins columns to a matrix, which the caller owns.
     *
     * @param columns the columns; null where an optional one is missing
     * @throws ServingException INVALID_ARGUMENT for a missing column of a type that has no NaN
     */
    static Tensor sideBySide(
            List<@Nullable Tensor> columns, List<String> names, DataType type, String name, Shape shape) {
        int width = columns.size();
        int rows = (int) (shape.elementCount() / width);
        if (type == DataType.BYTES) {
            return texts(columns, names, name, shape, rows);
        }
        Tensor matrix = Tensor.allocate(name, type, shape);
        boolean done = false;
        try {
            for (int c = 0; c < width; c++) {
                Tensor column = columns.get(c);
                if (column == null) {
                    missing(matrix, names.get(c), c, width, rows);
                } else {
                    write(matrix, column, c, width, rows);
                }
            }
            done = true;
            return matrix;
        } finally {
            if (!done) {
                matrix.close();
            }
        }
    }

    private static void missing(Tensor matrix, String column, int from, int step, int rows) {
        if (!matrix.dataType().isFloatingPoint()) {
            throw absent(column);
        }
        ByteBuffer to = matrix.buffer();
        for (int i = 0, at = from; i < rows; i++, at += step) {
            put(to, matrix.dataType(), at, Double.NaN);
        }
    }

    static ServingException absent(String column) {
        return ServingException.invalidArgument(
                "column '" + column + "' is missing, and its type has no missing value", "send the column");
    }

    private static Tensor texts(
            List<@Nullable Tensor> columns, List<String> names, String name, Shape shape, int rows) {
        int size = 0;
        ByteBuffer[] from = new ByteBuffer[columns.size()];
        for (int c = 0; c < from.length; c++) {
            Tensor column = columns.get(c);
            if (column == null) {
                throw absent(names.get(c));
            }
            from[c] = column.buffer();
            size = Math.addExact(size, column.byteLength());
        }
        MemoryRegion region = MemoryRegion.allocate(size);
        ByteBuffer to = region.buffer(0, size);
        for (int row = 0; row < rows; row++) {
            for (ByteBuffer column : from) {
                int length = column.getInt(column.position()) + 4;
                to.put(column.slice(column.position(), length));
                column.position(column.position() + length);
            }
        }
        return Tensor.over(name, DataType.BYTES, shape, region, 0, size);
    }

    private static void write(Tensor into, Tensor from, int first, int step, int count) {
        ByteBuffer in = from.buffer();
        ByteBuffer out = into.buffer();
        boolean whole = from.dataType().isInteger() && into.dataType().isInteger();
        for (int i = 0, at = first; i < count; i++, at += step) {
            if (whole) {
                putWhole(out, into.dataType(), at, whole(in, from.dataType(), i));
            } else {
                put(out, into.dataType(), at, number(in, from.dataType(), i));
            }
        }
    }

    private static long whole(ByteBuffer in, DataType type, int i) {
        return switch (type) {
            case INT8 -> in.get(i);
            case UINT8, BOOL -> in.get(i) & 0xff;
            case INT16 -> in.getShort(2 * i);
            case UINT16 -> in.getShort(2 * i) & 0xffff;
            case INT32 -> in.getInt(4 * i);
            case UINT32 -> in.getInt(4 * i) & 0xffffffffL;
            default -> in.getLong(8 * i);
        };
    }

    private static double number(ByteBuffer in, DataType type, int i) {
        return switch (type) {
            case FP32 -> in.getFloat(4 * i);
            case FP64 -> in.getDouble(8 * i);
            default -> whole(in, type, i);
        };
    }

    private static void putWhole(ByteBuffer out, DataType type, int i, long value) {
        switch (type.size()) {
            case 1 -> out.put(i, (byte) value);
            case 2 -> out.putShort(2 * i, (short) value);
            case 4 -> out.putInt(4 * i, (int) value);
            default -> out.putLong(8 * i, value);
        }
    }

    private static void put(ByteBuffer out, DataType type, int i, double value) {
        switch (type) {
            case FP32 -> out.putFloat(4 * i, (float) value);
            case FP64 -> out.putDouble(8 * i, value);
            default -> putWhole(out, type, i, (long) value);
        }
    }
}
