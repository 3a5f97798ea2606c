// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import io.nereid.base.ServingException;
import io.nereid.base.flatbuffers.FlatBuffersTable;
import io.nereid.tensor.MemoryRegion;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;

/**
 * Reads the description of one record batch and checks every length and position in it against the body. The numbers of
 * fields are those of Arrow's Message.fbs. Confined to one thread; used once.
 */
final class RecordBatchReader {
    private static final int STRUCT = 16;
    private static final int VIEW = 16;

    private final MemoryRegion region;
    private final int bodyAt;
    private final int bodyLength;
    private final ByteBuffer nodes;
    private final ByteBuffer buffers;
    private final ByteBuffer variadic;
    private final long rows;
    private long used;

    /** What the last call of {@link #node} found. */
    private int length;

    private int nulls;

    /** What the last call of {@link #buffer} found. */
    private int at;

    private int size;

    /**
     * Reads the head of a batch.
     *
     * @param region the body of the request, in which the batch's body has {@code bodyLength} bytes from {@code bodyAt}
     */
    RecordBatchReader(FlatBuffersTable batch, MemoryRegion region, int bodyAt, int bodyLength) {
        this.region = region;
        this.bodyAt = bodyAt;
        this.bodyLength = bodyLength;
        this.rows = batch.longAt(0, 0);
        this.nodes = batch.vector(1, STRUCT);
        this.buffers = batch.vector(2, STRUCT);
        this.variadic = batch.vector(4, 8);
        FlatBuffersTable compression = batch.table(3);
        if (compression != null) {
            String codec = compression.byteAt(0, 0) == 0 ? "LZ4" : "ZSTD";
            throw ServingException.invalidArgument(
                    "the buffers of the Arrow stream are compressed with " + codec + " (expected: not compressed)",
                    "write it with pa.ipc.IpcWriteOptions(compression=None); the body as a whole may be compressed, with"
                            + " Content-Encoding: gzip");
        }
        if (rows < 0) {
            throw ArrowStreamReader.damaged("a record batch has " + rows + " rows");
        }
    }

    long rows() {
        return rows;
    }

    /** Reads the columns. */
    List<ColumnChunk> read(ArrowSchema schema) {
        List<ColumnChunk> chunks = new ArrayList<>(schema.fields().size());
        for (ArrowField field : schema.fields()) {
            chunks.add(chunk(field));
        }
        if (nodes.hasRemaining() || buffers.hasRemaining() || variadic.hasRemaining()) {
            throw ArrowStreamReader.damaged("a record batch has more columns than the schema");
        }
        return chunks;
    }

    private ColumnChunk chunk(ArrowField field) {
        long count = rows;
        for (int i = 0; i < field.lists().rank(); i++) {
            node(field, count);
            buffer(field);
            if (nulls > 0) {
                checkBits(field, length);
                int row = firstNull(at, length);
                throw ServingException.invalidArgument(
                        field.label() + " has a null in place of a list, in row "
                                + row / Math.max(1, count / Math.max(1, rows)) + " of a record batch",
                        "drop the row, or fill it with a list of numbers");
            }
            count = Math.multiplyExact(count, field.lists().dim(i));
        }
        node(field, count);
        int elements = length;
        int gone = nulls;
        buffer(field);
        int validity = at;
        if (gone > 0) {
            checkBits(field, elements);
        }
        buffer(field);
        int values = at;
        switch (field.layout()) {
            case FIXED -> checkSize(field, (long) elements * field.type().size());
            case BITS -> checkBits(field, elements);
            case OFFSETS -> checkSize(field, elements == 0 ? 0 : 4L * elements + 4);
            case LARGE_OFFSETS -> checkSize(field, elements == 0 ? 0 : 8L * elements + 8);
            case VIEWS -> checkSize(field, (long) VIEW * elements);
        }
        return new ColumnChunk(elements, gone, validity, values, data(field));
    }

    /** The buffers of the bytes of texts. */
    private int[] data(ArrowField field) {
        int count = field.layout().buffers - 1;
        if (field.layout() == ColumnLayout.VIEWS) {
            if (!variadic.hasRemaining()) {
                throw ArrowStreamReader.damaged(field.label() + " has no number of buffers");
            }
            long given = variadic.getLong();
            if (given < 0 || given > buffers.remaining() / STRUCT) {
                throw ArrowStreamReader.damaged(field.label() + " has " + given + " buffers");
            }
            count = (int) given;
        }
        if (count == 0) {
            return ColumnChunk.NO_DATA;
        }
        int[] data = new int[2 * count];
        for (int i = 0; i < count; i++) {
            buffer(field);
            data[2 * i] = at;
            data[2 * i + 1] = size;
        }
        return data;
    }

    private void node(ArrowField field, long expected) {
        if (!nodes.hasRemaining()) {
            throw ArrowStreamReader.damaged("a record batch ends before " + field.label());
        }
        long count = nodes.getLong();
        long gone = nodes.getLong();
        if (count != expected) {
            throw ArrowStreamReader.damaged(field.label() + " has " + count + " values (expected: " + expected + ")");
        }
        if (count > Integer.MAX_VALUE - 64) {
            throw ServingException.invalidArgument(
                    field.label() + " has " + count + " values (expected: fewer than " + (Integer.MAX_VALUE - 64) + ")",
                    "split the table");
        }
        if (gone < 0 || gone > count) {
            throw ArrowStreamReader.damaged(field.label() + " has " + gone + " nulls in " + count + " values");
        }
        length = (int) count;
        nulls = (int) gone;
    }

    private void buffer(ArrowField field) {
        if (!buffers.hasRemaining()) {
            throw ArrowStreamReader.damaged("a record batch ends before the buffers of " + field.label());
        }
        long offset = buffers.getLong();
        long bytes = buffers.getLong();
        if (offset < 0 || bytes < 0 || offset > bodyLength || bytes > bodyLength - offset) {
            throw ArrowStreamReader.damaged("a buffer of " + field.label() + " has " + bytes + " bytes at " + offset
                    + ", outside of the " + bodyLength + " bytes of its record batch");
        }
        used += bytes;
        if (used > bodyLength) {
            // several columns over the same bytes would let a small body become large tensors
            throw ArrowStreamReader.damaged("the buffers of " + field.label() + " overlap others");
        }
        at = bodyAt + (int) offset;
        size = (int) bytes;
    }

    private void checkBits(ArrowField field, int count) {
        checkSize(field, (count + 7L) / 8);
    }

    private void checkSize(ArrowField field, long needed) {
        if (size < needed) {
            throw ArrowStreamReader.damaged(
                    "a buffer of " + field.label() + " has " + size + " bytes (expected: at least " + needed + ")");
        }
    }

    private int firstNull(int from, int count) {
        for (int i = 0; i < count; i++) {
            if ((region.getByte(from + (i >> 3)) >> (i & 7) & 1) == 0) {
                return i;
            }
        }
        return count;
    }
}
