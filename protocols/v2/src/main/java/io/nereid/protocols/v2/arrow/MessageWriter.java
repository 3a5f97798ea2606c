// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import io.nereid.json.ByteSink;
import io.nereid.tensor.DataType;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Writes the messages of an Arrow IPC stream, without the bodies of record batches. The numbers of fields and types are
 * those of Arrow's Schema.fbs and Message.fbs. Holds no state.
 */
final class MessageWriter {
    /** Every buffer of a body begins at a multiple of it, as Arrow recommends. */
    static final int ALIGNMENT = 64;

    private static final int V5 = 4;
    private static final int SCHEMA = 1;
    private static final int RECORD_BATCH = 3;
    private static final int INT = 2;
    private static final int FLOATING_POINT = 3;
    private static final int BINARY = 4;
    private static final int UTF8 = 5;
    private static final int BOOL = 6;
    private static final int FIXED_SIZE_LIST = 16;

    private MessageWriter() {}

    /** Appends the schema of a table. */
    static void schema(List<OutputColumn> columns, Map<String, String> metadata, ByteSink to) {
        MetadataBuilder out = new MetadataBuilder();
        int[] message = message(out, SCHEMA, 0);
        int[] schema = out.table(2, 4, 4);
        out.refer(message[2], schema[3]);
        int fields = out.vector(columns.size(), 4);
        out.refer(schema[1], fields);
        for (int i = 0; i < columns.size(); i++) {
            OutputColumn column = columns.get(i);
            out.refer(fields + 4 + 4 * i, field(out, column, column.tensor.name(), 0));
        }
        int pairs = out.vector(metadata.size(), 4);
        out.refer(schema[2], pairs);
        int next = pairs + 4;
        for (Map.Entry<String, String> entry : metadata.entrySet()) {
            int[] pair = out.table(4, 4);
            out.refer(next, pair[2]);
            out.refer(pair[0], out.text(entry.getKey()));
            out.refer(pair[1], out.text(entry.getValue()));
            next += 4;
        }
        append(out.finish(message[4]), to);
    }

    /** Appends the description of the record batch of a table, whose body is to follow. */
    static void recordBatch(List<OutputColumn> columns, ByteSink to) {
        List<long[]> nodes = new ArrayList<>();
        List<long[]> buffers = new ArrayList<>();
        long end = 0;
        for (OutputColumn column : columns) {
            long count = column.rows;
            for (int i = 0; i < column.row.rank(); i++) {
                nodes.add(new long[] {count, 0});
                buffers.add(new long[] {end, 0});
                count *= column.row.dim(i);
            }
            nodes.add(new long[] {count, 0});
            buffers.add(new long[] {end, 0});
            for (int i = 0; i < column.buffers.length; i++) {
                buffers.add(new long[] {end, column.length(i)});
                end = aligned(end + column.length(i));
            }
        }
        MetadataBuilder out = new MetadataBuilder();
        int[] message = message(out, RECORD_BATCH, end);
        int[] batch = out.table(8, 4, 4);
        out.refer(message[2], batch[3]);
        out.setLong(batch[0], columns.isEmpty() ? 0 : columns.get(0).rows);
        out.refer(batch[1], structs(out, nodes));
        out.refer(batch[2], structs(out, buffers));
        append(out.finish(message[4]), to);
    }

    /** Appends the end of the stream. */
    static void end(ByteSink to) {
        byte[] end = {-1, -1, -1, -1, 0, 0, 0, 0};
        to.append(end, 0, end.length);
    }

    static long aligned(long length) {
        return length + ALIGNMENT - 1 & -ALIGNMENT;
    }

    private static int structs(MetadataBuilder out, List<long[]> pairs) {
        int vector = out.vector(pairs.size(), 16);
        for (int i = 0; i < pairs.size(); i++) {
            out.setLong(vector + 4 + 16 * i, pairs.get(i)[0]);
            out.setLong(vector + 12 + 16 * i, pairs.get(i)[1]);
        }
        return vector;
    }

    private static int[] message(MetadataBuilder out, int kind, long bodyLength) {
        int[] message = out.table(2, 1, 4, 8);
        out.setShort(message[0], V5);
        out.setByte(message[1], kind);
        out.setLong(message[3], bodyLength);
        return message;
    }

    private static int field(MetadataBuilder out, OutputColumn column, String name, int depth) {
        int[] field = out.table(4, 1, 1, 4, 0, 4);
        out.refer(field[0], out.text(name));
        boolean list = depth < column.row.rank();
        out.setByte(field[2], list ? FIXED_SIZE_LIST : kind(column));
        int[] type;
        if (list) {
            type = out.table(4);
            out.setInt(type[0], (int) column.row.dim(depth));
        } else {
            type = type(out, column.type);
        }
        out.refer(field[3], type[type.length - 1]);
        int children = out.vector(list ? 1 : 0, 4);
        out.refer(field[5], children);
        if (list) {
            out.refer(children + 4, field(out, column, "item", depth + 1));
        }
        return field[6];
    }

    private static int kind(OutputColumn column) {
        return switch (column.type) {
            case BYTES -> column.utf8 ? UTF8 : BINARY;
            case BOOL -> BOOL;
            case FP16, BF16, FP32, FP64 -> FLOATING_POINT;
            default -> INT;
        };
    }

    private static int[] type(MetadataBuilder out, DataType type) {
        if (type.isFloatingPoint()) {
            int[] floating = out.table(2);
            out.setShort(floating[0], type == DataType.FP16 ? 0 : type == DataType.FP32 ? 1 : 2);
            return floating;
        }
        if (type.isInteger()) {
            int[] integer = out.table(4, 1);
            out.setInt(integer[0], 8 * type.size());
            out.setByte(integer[1], type.ordinal() >= DataType.INT8.ordinal() ? 1 : 0);
            return integer;
        }
        return out.table();
    }

    private static void append(byte[] metadata, ByteSink to) {
        byte[] prefix = new byte[8];
        ByteBuffer.wrap(prefix).order(ByteOrder.LITTLE_ENDIAN).putInt(-1).putInt(metadata.length);
        to.append(prefix, 0, prefix.length);
        to.append(metadata, 0, metadata.length);
    }
}
