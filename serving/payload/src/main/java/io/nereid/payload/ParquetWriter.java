// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/**
 * Writes a Parquet file of one row group with required string columns: plain encoding, no compression, one page for
 * each column. Confined to one thread.
 */
final class ParquetWriter {
    private static final byte[] MAGIC = "PAR1".getBytes(StandardCharsets.US_ASCII);
    private static final int BYTE_ARRAY = 6;
    private static final int RLE = 3;

    private final ByteArrayOutputStream file = new ByteArrayOutputStream();

    private ParquetWriter() {}

    /**
     * Writes a file.
     *
     * @param rows each with a value for each column
     */
    static byte[] write(List<String> columns, List<List<String>> rows) {
        return new ParquetWriter().table(columns, rows);
    }

    private byte[] table(List<String> columns, List<List<String>> rows) {
        file.writeBytes(MAGIC);
        List<Chunk> chunks = new ArrayList<>(columns.size());
        for (int i = 0; i < columns.size(); i++) {
            chunks.add(column(rows, i));
        }
        byte[] footer = footer(columns, rows.size(), chunks);
        file.writeBytes(footer);
        file.writeBytes(little(footer.length));
        file.writeBytes(MAGIC);
        return file.toByteArray();
    }

    /**
     * Writes a column chunk. Required columns have no repetition and definition levels, so the page contains the values
     * only.
     */
    private Chunk column(List<List<String>> rows, int index) {
        ByteArrayOutputStream page = new ByteArrayOutputStream();
        for (List<String> row : rows) {
            byte[] value = row.get(index).getBytes(StandardCharsets.UTF_8);
            page.writeBytes(little(value.length));
            page.writeBytes(value);
        }
        Compact header = new Compact();
        header.integer(1, 0); // a data page
        header.integer(2, page.size());
        header.integer(3, page.size());
        header.begin(5);
        header.integer(1, rows.size());
        header.integer(2, 0); // plain
        header.integer(3, RLE);
        header.integer(4, RLE);
        header.end();
        header.end();
        int at = file.size();
        file.writeBytes(header.bytes());
        file.writeBytes(page.toByteArray());
        return new Chunk(at, file.size() - at);
    }

    /**
     * The file's metadata: the schema, and the position and size of each column chunk. The numbers are the field ids of
     * parquet.thrift.
     */
    private static byte[] footer(List<String> columns, int rows, List<Chunk> chunks) {
        Compact out = new Compact();
        out.integer(1, 1);
        out.list(2, Compact.STRUCT, columns.size() + 1);
        out.element();
        out.text(4, "events");
        out.integer(5, columns.size());
        out.end();
        for (String column : columns) {
            out.element();
            out.integer(1, BYTE_ARRAY);
            out.integer(3, 0); // required
            out.text(4, column);
            out.integer(6, 0); // UTF-8
            out.end();
        }
        out.number(3, rows);
        out.list(4, Compact.STRUCT, 1);
        out.element();
        out.list(1, Compact.STRUCT, chunks.size());
        long total = 0;
        for (int i = 0; i < chunks.size(); i++) {
            Chunk chunk = chunks.get(i);
            total += chunk.length;
            out.element();
            out.number(2, chunk.at);
            out.begin(3);
            out.integer(1, BYTE_ARRAY);
            out.list(2, Compact.I32, 2);
            out.element(0);
            out.element(RLE);
            out.list(3, Compact.BINARY, 1);
            out.element(columns.get(i));
            out.integer(4, 0); // not compressed
            out.number(5, rows);
            out.number(6, chunk.length);
            out.number(7, chunk.length);
            out.number(9, chunk.at);
            out.end();
            out.end();
        }
        out.number(2, total);
        out.number(3, rows);
        out.end();
        out.text(6, "nereid");
        out.end();
        return out.bytes();
    }

    private static byte[] little(int value) {
        return ByteBuffer.allocate(4)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(value)
                .array();
    }

    /** The position of a column chunk, including its page header. Immutable. */
    private record Chunk(int at, int length) {}

    /** Writes Thrift's compact protocol, as far as Parquet's metadata needs it. Confined to one thread. */
    private static final class Compact {
        static final int I32 = 5;
        static final int I64 = 6;
        static final int BINARY = 8;
        static final int LIST = 9;
        static final int STRUCT = 12;

        private final ByteArrayOutputStream out = new ByteArrayOutputStream();
        private final int[] outer = new int[8];
        private int depth;
        private int last;

        private void field(int id, int type) {
            // The short form of a field header: all ids written here grow by less than 16.
            out.write((id - last) << 4 | type);
            last = id;
        }

        void integer(int id, int value) {
            field(id, I32);
            zigzag(value);
        }

        void number(int id, long value) {
            field(id, I64);
            zigzag(value);
        }

        void text(int id, String value) {
            field(id, BINARY);
            element(value);
        }

        void list(int id, int type, int size) {
            field(id, LIST);
            if (size < 15) {
                out.write(size << 4 | type);
            } else {
                out.write(0xf0 | type);
                varint(size);
            }
        }

        /**
         * Begins an element that is a struct; {@link #end} ends it. Field ids are written as deltas, so they restart in
         * each struct.
         */
        void element() {
            outer[depth++] = last;
            last = 0;
        }

        void element(int value) {
            zigzag(value);
        }

        void element(String value) {
            byte[] utf8 = value.getBytes(StandardCharsets.UTF_8);
            varint(utf8.length);
            out.writeBytes(utf8);
        }

        void begin(int id) {
            field(id, STRUCT);
            element();
        }

        void end() {
            out.write(0);
            last = depth == 0 ? 0 : outer[--depth];
        }

        private void zigzag(long value) {
            varint(value << 1 ^ value >> 63);
        }

        private void varint(long value) {
            long rest = value;
            while ((rest & ~0x7fL) != 0) {
                out.write((int) (rest & 0x7f | 0x80));
                rest >>>= 7;
            }
            out.write((int) rest);
        }

        byte[] bytes() {
            return out.toByteArray();
        }
    }
}
