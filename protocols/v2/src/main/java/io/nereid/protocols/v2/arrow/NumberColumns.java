// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import io.nereid.base.ServingException;
import io.nereid.base.SmallFloats;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import java.nio.ByteBuffer;

/**
 * Copies numbers of columns to tensors, converted to the tensor's type. Floating-point numbers are rounded to the nearest
 * one of the type, as numbers of JSON are. An integer must fit into the type, and a floating-point number becomes an
 * integer only when it is whole. A null becomes NaN, or is refused when the type has none. Confined to one thread.
 */
final class NumberColumns {
    private static final int BLOCK = 256;

    private final ByteBuffer source;
    private final double[] reals = new double[BLOCK];
    private final long[] wholes = new long[BLOCK];

    NumberColumns(MemoryRegion body) {
        this.source = body.buffer(0, body.size());
    }

    /** Refuses a column whose values cannot become elements of an input, whatever they are. */
    static void check(ArrowField field, String input, DataType type) {
        if (field.layout().isText() || (type == DataType.BOOL && field.type() != DataType.BOOL)) {
            throw ServingException.invalidArgument(
                    field.label() + " is of type " + field.typeName() + ", which does not convert to the " + type
                            + " of input '" + input + "'",
                    type == DataType.BOOL
                            ? "convert it with column.cast(pa.bool_())"
                            : "convert it to numbers before the request");
        }
    }

    /** Refuses the first null of a column for an input whose type has no NaN. */
    void checkNulls(ArrowColumn column, String input, DataType type) {
        if (type.isFloatingPoint()) {
            return;
        }
        long before = 0;
        for (ColumnChunk chunk : column.chunks()) {
            for (int i = 0; chunk.nulls() > 0 && i < chunk.elements(); i++) {
                if (isNull(chunk, i)) {
                    throw ServingException.invalidArgument(
                            column.field().label() + " has a null in row " + row(column.field(), before + i)
                                    + ", which input '" + input + "' of type " + type + " cannot hold",
                            "fill or drop it; only FP16, BF16, FP32 and FP64 take a null, as NaN");
                }
            }
            before += chunk.elements();
        }
    }

    private static long row(ArrowField field, long element) {
        return element / Math.max(1, field.width());
    }

    private boolean isNull(ColumnChunk chunk, int i) {
        return bit(chunk.validity(), i) == 0;
    }

    private int bit(int from, int i) {
        return source.get(from + (i >> 3)) >> (i & 7) & 1;
    }

    /**
     * Copies a part of a column's chunk; nulls were checked.
     *
     * @param from the first value of the chunk to copy
     * @param count the number of values
     * @param before the number of values of the column before this chunk, for messages
     * @param out the bytes of the tensor, of type {@code type}
     * @param at where the first value goes
     * @param step the distance between values
     */
    void copy(
            ArrowField field,
            ColumnChunk chunk,
            int from,
            int count,
            long before,
            DataType type,
            ByteBuffer out,
            int at,
            int step) {
        for (int done = 0; done < count; done += BLOCK) {
            int n = Math.min(BLOCK, count - done);
            int first = from + done;
            if (type.isFloatingPoint()) {
                readReals(field.type(), chunk, first, n);
                if (chunk.nulls() > 0) {
                    for (int i = 0; i < n; i++) {
                        reals[i] = isNull(chunk, first + i) ? Double.NaN : reals[i];
                    }
                }
                writeReals(type, n, out, at + done * step, step);
            } else {
                if (field.type().isFloatingPoint()) {
                    readReals(field.type(), chunk, first, n);
                    makeWhole(field, type, n, before + first);
                } else {
                    readWholes(field.type(), chunk, first, n);
                    checkRange(field, type, n, before + first);
                }
                writeWholes(type, n, out, at + done * step, step);
            }
        }
    }

    private void readReals(DataType type, ColumnChunk chunk, int first, int n) {
        double[] to = reals;
        ByteBuffer from = source;
        int at = chunk.values() + first * Math.max(1, type.size());
        switch (type) {
            case FP64 -> {
                for (int i = 0; i < n; i++) {
                    to[i] = from.getDouble(at + 8 * i);
                }
            }
            case FP32 -> {
                for (int i = 0; i < n; i++) {
                    to[i] = from.getFloat(at + 4 * i);
                }
            }
            case FP16 -> {
                for (int i = 0; i < n; i++) {
                    to[i] = SmallFloats.fp16ToFloat(from.getShort(at + 2 * i));
                }
            }
            default -> {
                readWholes(type, chunk, first, n);
                for (int i = 0; i < n; i++) {
                    long whole = wholes[i];
                    // an unsigned number above the signed ones: half of it, its lowest bit kept for the rounding
                    to[i] = type == DataType.UINT64 && whole < 0 ? (double) (whole >>> 1 | whole & 1) * 2 : whole;
                }
            }
        }
    }

    private void readWholes(DataType type, ColumnChunk chunk, int first, int n) {
        long[] to = wholes;
        ByteBuffer from = source;
        int at = chunk.values() + first * type.size();
        switch (type) {
            case INT64, UINT64 -> {
                for (int i = 0; i < n; i++) {
                    to[i] = from.getLong(at + 8 * i);
                }
            }
            case INT32 -> {
                for (int i = 0; i < n; i++) {
                    to[i] = from.getInt(at + 4 * i);
                }
            }
            case UINT32 -> {
                for (int i = 0; i < n; i++) {
                    to[i] = from.getInt(at + 4 * i) & 0xffff_ffffL;
                }
            }
            case INT16 -> {
                for (int i = 0; i < n; i++) {
                    to[i] = from.getShort(at + 2 * i);
                }
            }
            case UINT16 -> {
                for (int i = 0; i < n; i++) {
                    to[i] = from.getShort(at + 2 * i) & 0xffff;
                }
            }
            case INT8 -> {
                for (int i = 0; i < n; i++) {
                    to[i] = from.get(at + i);
                }
            }
            case UINT8 -> {
                for (int i = 0; i < n; i++) {
                    to[i] = from.get(at + i) & 0xff;
                }
            }
            default -> {
                for (int i = 0; i < n; i++) {
                    to[i] = bit(chunk.values(), first + i);
                }
            }
        }
    }

    /** The largest value of an integer type; that of UINT64 is beyond a long. */
    private static long largest(DataType type) {
        return switch (type) {
            case BOOL -> 1;
            case INT8 -> Byte.MAX_VALUE;
            case UINT8 -> 0xff;
            case INT16 -> Short.MAX_VALUE;
            case UINT16 -> 0xffff;
            case INT32 -> Integer.MAX_VALUE;
            case UINT32 -> 0xffff_ffffL;
            default -> Long.MAX_VALUE;
        };
    }

    private static long smallest(DataType type) {
        return switch (type) {
            case INT8 -> Byte.MIN_VALUE;
            case INT16 -> Short.MIN_VALUE;
            case INT32 -> Integer.MIN_VALUE;
            case INT64 -> Long.MIN_VALUE;
            default -> 0;
        };
    }

    private void checkRange(ArrowField field, DataType type, int n, long element) {
        if (field.type() == type) {
            return;
        }
        long least = field.type() == DataType.UINT64 ? Math.max(0, smallest(type)) : smallest(type);
        long most = largest(type);
        for (int i = 0; i < n; i++) {
            if (wholes[i] < least || wholes[i] > most) {
                String value =
                        field.type() == DataType.UINT64 ? Long.toUnsignedString(wholes[i]) : Long.toString(wholes[i]);
                throw outside(field, type, value, element + i);
            }
        }
    }

    private void makeWhole(ArrowField field, DataType type, int n, long element) {
        double least = smallest(type);
        // the first number above the range: adding one to the largest long makes a double that is beyond it
        double above = (double) largest(type) + (largest(type) == Long.MAX_VALUE ? 0 : 1);
        for (int i = 0; i < n; i++) {
            double real = reals[i];
            if (!(real >= least && real < above) || real != Math.rint(real)) {
                throw outside(field, type, Double.toString(real), element + i);
            }
            wholes[i] = (long) real;
        }
    }

    private static ServingException outside(ArrowField field, DataType type, String value, long element) {
        return ServingException.invalidArgument(
                field.label() + " has " + value + " in row " + row(field, element) + ", which " + type + " cannot hold",
                "round, fill or clip the column to whole numbers of the type");
    }

    private void writeReals(DataType type, int n, ByteBuffer out, int at, int step) {
        double[] from = reals;
        switch (type) {
            case FP64 -> {
                for (int i = 0; i < n; i++) {
                    out.putDouble(at + i * step, from[i]);
                }
            }
            case FP32 -> {
                for (int i = 0; i < n; i++) {
                    out.putFloat(at + i * step, (float) from[i]);
                }
            }
            case FP16 -> {
                for (int i = 0; i < n; i++) {
                    out.putShort(at + i * step, SmallFloats.fp16(from[i]));
                }
            }
            default -> {
                for (int i = 0; i < n; i++) {
                    out.putShort(at + i * step, SmallFloats.bf16(from[i]));
                }
            }
        }
    }

    private void writeWholes(DataType type, int n, ByteBuffer out, int at, int step) {
        long[] from = wholes;
        switch (type.size()) {
            case 8 -> {
                for (int i = 0; i < n; i++) {
                    out.putLong(at + i * step, from[i]);
                }
            }
            case 4 -> {
                for (int i = 0; i < n; i++) {
                    out.putInt(at + i * step, (int) from[i]);
                }
            }
            case 2 -> {
                for (int i = 0; i < n; i++) {
                    out.putShort(at + i * step, (short) from[i]);
                }
            }
            default -> {
                for (int i = 0; i < n; i++) {
                    out.put(at + i * step, (byte) from[i]);
                }
            }
        }
    }
}
