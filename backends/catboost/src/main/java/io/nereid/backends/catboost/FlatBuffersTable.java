// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.catboost;

import io.nereid.base.ServingException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A table of a FlatBuffers message: fields by number, each of which may be absent. The message is not trusted: an
 * offset outside of it throws IndexOutOfBoundsException, a length is checked against the bytes that are there before
 * memory is allocated, and the total size of the vectors that are read is limited, because a small malicious message
 * can refer to the same bytes many times. Confined to the reading of one message.
 *
 * @param message the message, little-endian, from position 0
 * @param at where the table begins
 * @param fields where the offsets of its fields begin (its vtable)
 * @param end the end of the vtable
 * @param left how many bytes of vectors may still be read
 */
record FlatBuffersTable(ByteBuffer message, int at, int fields, int end, long[] left) {
    /** The root of a message. */
    static FlatBuffersTable root(ByteBuffer message) {
        return at(message, message.getInt(0), new long[] {8L * message.limit()});
    }

    private static FlatBuffersTable at(ByteBuffer message, int at, long[] left) {
        int offsets = Math.subtractExact(at, message.getInt(at));
        int size = Short.toUnsignedInt(message.getShort(offsets));
        return new FlatBuffersTable(message, at, offsets + 4, offsets + size, left);
    }

    /** The position of a field, or -1 when it is absent. */
    private int field(int number) {
        int place = fields + 2 * number;
        int offset = place + 2 <= end ? Short.toUnsignedInt(message.getShort(place)) : 0;
        return offset == 0 ? -1 : at + offset;
    }

    /** The position that a field refers to, or -1 when it is absent. */
    private int target(int number) {
        int field = field(number);
        return field < 0 ? -1 : pointed(field);
    }

    private int pointed(int place) {
        return Math.addExact(place, message.getInt(place));
    }

    int whole(int number, int otherwise) {
        int field = field(number);
        return field < 0 ? otherwise : message.getInt(field);
    }

    int small(int number, int otherwise) {
        int field = field(number);
        return field < 0 ? otherwise : message.get(field);
    }

    float real(int number, float otherwise) {
        int field = field(number);
        return field < 0 ? otherwise : message.getFloat(field);
    }

    double wide(int number, double otherwise) {
        int field = field(number);
        return field < 0 ? otherwise : message.getDouble(field);
    }

    @Nullable FlatBuffersTable table(int number) {
        int target = target(number);
        return target < 0 ? null : at(message, target, left);
    }

    String text(int number) {
        int target = target(number);
        return target < 0 ? "" : textAt(target);
    }

    private String textAt(int target) {
        byte[] bytes = new byte[length(target, 1)];
        message.get(target + 4, bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    /** The number of elements of a vector, checked against the bytes that are there. */
    private int length(int target, int width) {
        int length = message.getInt(target);
        if (length < 0 || (long) length * width > message.limit() - target - 4L) {
            throw ServingException.invalidArgument(
                    "it is truncated within a vector of " + Integer.toUnsignedString(length));
        }
        left[0] -= (long) length * width;
        if (left[0] < 0) {
            throw ServingException.invalidArgument("its vectors overlap");
        }
        return length;
    }

    /** The elements of a vector, {@code width} bytes each; empty when it is absent. */
    ByteBuffer list(int number, int width) {
        int target = target(number);
        int bytes = target < 0 ? 0 : length(target, width) * width;
        return message.slice(target < 0 ? 0 : target + 4, bytes).order(message.order());
    }

    List<FlatBuffersTable> tables(int number) {
        ByteBuffer list = list(number, 4);
        int first = target(number) + 4;
        List<FlatBuffersTable> tables = new ArrayList<>();
        for (int i = 0; i < list.limit(); i += 4) {
            tables.add(at(message, pointed(first + i), left));
        }
        return tables;
    }

    List<String> texts(int number) {
        ByteBuffer list = list(number, 4);
        int first = target(number) + 4;
        List<String> texts = new ArrayList<>();
        for (int i = 0; i < list.limit(); i += 4) {
            texts.add(textAt(pointed(first + i)));
        }
        return texts;
    }

    int[] wholes(int number) {
        ByteBuffer list = list(number, 4);
        int[] values = new int[list.limit() / 4];
        list.asIntBuffer().get(values);
        return values;
    }

    float[] reals(int number) {
        ByteBuffer list = list(number, 4);
        float[] values = new float[list.limit() / 4];
        list.asFloatBuffer().get(values);
        return values;
    }

    double[] wides(int number) {
        ByteBuffer list = list(number, 8);
        double[] values = new double[list.limit() / 8];
        list.asDoubleBuffer().get(values);
        return values;
    }
}
