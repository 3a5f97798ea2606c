// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.arrow;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Writes a FlatBuffers message from front to back: what refers to something is written before it, and the reference is
 * set afterwards. Confined to one thread; used for one message.
 */
final class MetadataBuilder {
    private ByteBuffer out = ByteBuffer.allocate(1024).order(ByteOrder.LITTLE_ENDIAN);

    MetadataBuilder() {
        // the place of the reference to the root table
        out.putInt(0);
    }

    private static int aligned(int position, int to) {
        return position + to - 1 & -to;
    }

    /** Moves the end to a position; the bytes in between are zero. */
    private void advance(int to) {
        if (to > out.capacity()) {
            ByteBuffer larger =
                    ByteBuffer.allocate(Math.max(to, 2 * out.capacity())).order(ByteOrder.LITTLE_ENDIAN);
            larger.put(out.array(), 0, out.position());
            out = larger;
        }
        out.position(to);
    }

    /**
     * Writes a table of zeros.
     *
     * @param sizes the bytes of each field (1, 2, 4 or 8), 0 for an absent one
     * @return the positions of the fields, and after them that of the table
     */
    int[] table(int... sizes) {
        int[] places = new int[sizes.length + 1];
        int size = 4;
        for (int i = 0; i < sizes.length; i++) {
            if (sizes[i] > 0) {
                places[i] = aligned(size, sizes[i]);
                size = places[i] + sizes[i];
            }
        }
        int offsets = 4 + 2 * sizes.length;
        int table = aligned(aligned(out.position(), 2) + offsets, 8);
        advance(table + size);
        out.putInt(table, offsets);
        out.putShort(table - offsets, (short) offsets);
        out.putShort(table - offsets + 2, (short) size);
        for (int i = 0; i < sizes.length; i++) {
            out.putShort(table - offsets + 4 + 2 * i, (short) places[i]);
            places[i] += table;
        }
        places[sizes.length] = table;
        return places;
    }

    void setByte(int place, int value) {
        out.put(place, (byte) value);
    }

    void setShort(int place, int value) {
        out.putShort(place, (short) value);
    }

    void setInt(int place, int value) {
        out.putInt(place, value);
    }

    void setLong(int place, long value) {
        out.putLong(place, value);
    }

    /** Lets a field or an element refer to what is at {@code target}, which lies after it. */
    void refer(int place, int target) {
        out.putInt(place, target - place);
    }

    /** Writes a text and returns its position. */
    int text(String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        int at = vector(bytes.length, 1);
        out.put(at + 4, bytes);
        // a text ends with a zero, which is not part of its length
        advance(out.position() + 1);
        return at;
    }

    /** Writes a vector of zeros and returns its position; the elements begin 4 bytes after it. */
    int vector(int count, int width) {
        int at = aligned(out.position() + 4, Math.max(4, Math.min(width, 8))) - 4;
        advance(at + 4 + count * width);
        out.putInt(at, count);
        return at;
    }

    /** Ends the message: its length is a multiple of 8. */
    byte[] finish(int root) {
        refer(0, root);
        advance(aligned(out.position(), 8));
        return Arrays.copyOf(out.array(), out.position());
    }
}
