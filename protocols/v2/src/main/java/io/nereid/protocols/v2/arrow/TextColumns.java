// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import io.nereid.base.ServingException;
import io.nereid.tensor.MemoryRegion;
import java.util.List;

/**
 * Copies texts of columns to the bytes of a BYTES tensor: for each element its length and its bytes. Checks the offsets
 * of the texts, which the reader of the stream leaves to it. Confined to one thread.
 */
final class TextColumns {
    private static final int INLINE = 12;

    private final MemoryRegion body;

    /** Where the last text that was looked at begins, and its length. */
    private int at;

    private int length;

    TextColumns(MemoryRegion body) {
        this.body = body;
    }

    static void check(ArrowField field, String input) {
        if (!field.layout().isText()) {
            throw ServingException.invalidArgument(
                    field.label() + " is of type " + field.typeName()
                            + ", which does not convert to the BYTES of input '" + input + "'",
                    "convert it with column.cast(pa.string())");
        }
    }

    /**
     * The number of bytes that the columns take side by side.
     *
     * @throws ServingException INVALID_ARGUMENT when a text lies outside of its buffer, or is null
     */
    long size(List<ArrowColumn> columns, String input) {
        long sum = 0;
        for (ArrowColumn column : columns) {
            long before = 0;
            for (ColumnChunk chunk : column.chunks()) {
                for (int i = 0; i < chunk.elements(); i++) {
                    if (chunk.nulls() > 0 && (body.getByte(chunk.validity() + (i >> 3)) >> (i & 7) & 1) == 0) {
                        throw ServingException.invalidArgument(
                                column.field().label() + " has a null in row "
                                        + (before + i)
                                                / Math.max(1, column.field().width()) + ", which input '" + input
                                        + "' of type BYTES cannot hold",
                                "fill it, such as with column.fill_null(\"\"), or drop the row");
                    }
                    find(column.field(), chunk, i);
                    sum += 4L + length;
                }
                before += chunk.elements();
            }
        }
        return sum;
    }

    /** Writes the texts of the columns, which {@link #size} has checked, row by row. */
    void copy(List<ArrowColumn> columns, MemoryRegion out) {
        int to = 0;
        int chunks = columns.get(0).chunks().size();
        for (int k = 0; k < chunks; k++) {
            int elements = columns.get(0).chunks().get(k).elements();
            for (int i = 0; i < elements; i++) {
                for (int c = 0; c < columns.size(); c++) {
                    ArrowColumn column = columns.get(c);
                    find(column.field(), column.chunks().get(k), i);
                    out.setInt(to, length);
                    out.setBytes(to + 4, body, at, length);
                    to += 4 + length;
                }
            }
        }
    }

    private void find(ArrowField field, ColumnChunk chunk, int i) {
        int[] data = chunk.data();
        switch (field.layout()) {
            case OFFSETS -> {
                long from = body.getInt(chunk.values() + 4 * i);
                place(field, from, body.getInt(chunk.values() + 4 * i + 4) - from, data[0], data[1]);
            }
            case LARGE_OFFSETS -> {
                long from = wide(chunk.values() + 8 * i);
                long to = wide(chunk.values() + 8 * i + 8);
                // both are compared with an int before the difference can overflow
                place(field, from, to < 0 ? -1 : to - Math.max(0, from), data[0], data[1]);
            }
            default -> {
                int view = chunk.values() + 16 * i;
                int size = body.getInt(view);
                if (size >= 0 && size <= INLINE) {
                    at = view + 4;
                    length = size;
                    return;
                }
                int buffer = body.getInt(view + 8);
                if (buffer < 0 || buffer >= data.length / 2) {
                    throw ArrowStreamReader.damaged(
                            "a text of " + field.label() + " lies in buffer " + buffer + " of " + data.length / 2);
                }
                place(field, body.getInt(view + 12), size, data[2 * buffer], data[2 * buffer + 1]);
            }
        }
    }

    private long wide(int place) {
        return body.getInt(place) & 0xffff_ffffL | (long) body.getInt(place + 4) << 32;
    }

    private void place(ArrowField field, long from, long size, int dataAt, int dataSize) {
        if (from < 0 || size < 0 || from > dataSize || size > dataSize - from) {
            throw ArrowStreamReader.damaged("a text of " + field.label() + " has " + size + " bytes at " + from
                    + ", outside of its buffer of " + dataSize + " bytes");
        }
        at = dataAt + (int) from;
        length = (int) size;
    }
}
