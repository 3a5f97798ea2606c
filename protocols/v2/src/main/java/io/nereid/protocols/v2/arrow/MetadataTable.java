// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import io.nereid.base.ServingException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A table of Arrow's metadata, which is encoded with FlatBuffers: fields by number, each of which may be absent. The bytes
 * are not trusted: an offset outside of the message throws IndexOutOfBoundsException or ArithmeticException, a length is
 * checked against the bytes that are there before memory is allocated, and the total size of what is read is limited,
 * because a small malicious message can refer to the same bytes many times. Confined to the reading of one message.
 */
final class MetadataTable {
    private static final int READ_FACTOR = 8;

    private final ByteBuffer message;
    private final int at;
    private final int fields;
    private final int end;
    private final long[] left;

    private MetadataTable(ByteBuffer message, int at, long[] left) {
        this.message = message;
        this.at = at;
        this.left = left;
        int offsets = Math.subtractExact(at, message.getInt(at));
        this.fields = Math.addExact(offsets, 4);
        this.end = offsets + Short.toUnsignedInt(message.getShort(offsets));
    }

    /** The root table of a message, which takes all of the little-endian buffer. */
    static MetadataTable root(ByteBuffer message) {
        return new MetadataTable(message, message.getInt(0), new long[] {(long) READ_FACTOR * message.limit()});
    }

    /** The position of a field, or -1 when it is absent. */
    private int field(int number) {
        int place = fields + 2 * number;
        int offset = place + 2 <= end ? Short.toUnsignedInt(message.getShort(place)) : 0;
        return offset == 0 ? -1 : Math.addExact(at, offset);
    }

    /** The position that a field refers to, or -1 when it is absent. */
    private int target(int number) {
        int field = field(number);
        return field < 0 ? -1 : Math.addExact(field, message.getInt(field));
    }

    int byteAt(int number, int otherwise) {
        int field = field(number);
        return field < 0 ? otherwise : message.get(field);
    }

    int shortAt(int number, int otherwise) {
        int field = field(number);
        return field < 0 ? otherwise : message.getShort(field);
    }

    int intAt(int number, int otherwise) {
        int field = field(number);
        return field < 0 ? otherwise : message.getInt(field);
    }

    long longAt(int number, long otherwise) {
        int field = field(number);
        return field < 0 ? otherwise : message.getLong(field);
    }

    boolean has(int number) {
        return field(number) >= 0;
    }

    @Nullable MetadataTable table(int number) {
        int target = target(number);
        return target < 0 ? null : new MetadataTable(message, target, left);
    }

    /** A text; empty when it is absent. */
    String text(int number) {
        int target = target(number);
        if (target < 0) {
            return "";
        }
        byte[] bytes = new byte[length(target, 1)];
        message.get(target + 4, bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** The number of elements of a vector, checked against the bytes that are there. */
    private int length(int target, int width) {
        int length = message.getInt(target);
        if (length < 0 || (long) length * width > message.limit() - target - 4L) {
            throw damaged("a vector of " + Integer.toUnsignedString(length) + " elements is cut off");
        }
        left[0] -= (long) length * width;
        if (left[0] < 0) {
            throw damaged("its vectors overlap");
        }
        return length;
    }

    /** The elements of a vector of structs, {@code width} bytes each; empty when it is absent. */
    ByteBuffer structs(int number, int width) {
        int target = target(number);
        int bytes = target < 0 ? 0 : length(target, width) * width;
        return message.slice(target < 0 ? 0 : target + 4, bytes).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** The tables of a vector; empty when it is absent. */
    List<MetadataTable> tables(int number) {
        int target = target(number);
        if (target < 0) {
            return List.of();
        }
        int count = length(target, 4);
        List<MetadataTable> tables = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            int place = target + 4 + 4 * i;
            tables.add(new MetadataTable(message, Math.addExact(place, message.getInt(place)), left));
        }
        return tables;
    }

    static ServingException damaged(String how) {
        return ServingException.invalidArgument(
                "the Arrow stream is damaged: " + how, "send the bytes that pyarrow.ipc.new_stream writes, unchanged");
    }
}
