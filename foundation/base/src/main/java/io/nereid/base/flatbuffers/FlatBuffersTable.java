// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base.flatbuffers;

import io.nereid.base.ServingException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;

/**
 * A table of a FlatBuffers message: fields by number, each of which may be absent. The message is not trusted: an offset
 * outside of it throws IndexOutOfBoundsException or ArithmeticException, a length is checked against the bytes that are there
 * before memory is allocated, and the total size of the vectors that are read is limited, because a small malicious message can
 * refer to the same bytes many times. Confined to the reading of one message.
 *
 * <pre>{@code
 * FlatBuffersTable message = FlatBuffersTable.root(bytes, how -> ServingException.invalidArgument("damaged: " + how));
 * FlatBuffersTable header = message.table(2);
 * long rows = header == null ? 0 : header.longAt(0, 0);
 * }</pre>
 *
 * <p>Format: the FlatBuffers documentation, "FlatBuffer Internals".
 */
public final class FlatBuffersTable {
    /** How many times the size of the message may be read, all vectors together. */
    private static final long READ_FACTOR = 8;

    private final Message message;
    private final ByteBuffer bytes;
    private final int at;
    /** Where the offsets of the fields begin and end. */
    private final int fields;

    private final int end;

    /** What the tables of a message share. */
    private static final class Message {
        final ByteBuffer bytes;
        final Function<String, ServingException> damaged;
        long left;

        Message(ByteBuffer bytes, Function<String, ServingException> damaged) {
            this.bytes = bytes;
            this.damaged = damaged;
            this.left = READ_FACTOR * bytes.limit();
        }
    }

    private FlatBuffersTable(Message message, int at) {
        this.message = message;
        this.bytes = message.bytes;
        this.at = at;
        int offsets = Math.subtractExact(at, bytes.getInt(at));
        this.fields = Math.addExact(offsets, 4);
        this.end = offsets + Short.toUnsignedInt(bytes.getShort(offsets));
    }

    /**
     * The root table of a message.
     *
     * @param message the message, which takes all of the buffer from position 0; little-endian
     * @param damaged makes the error for a vector that cannot be, from a description of it
     */
    public static FlatBuffersTable root(ByteBuffer message, Function<String, ServingException> damaged) {
        return new FlatBuffersTable(new Message(message, damaged), message.getInt(0));
    }

    /** The position of a field, or -1 when it is absent. */
    private int field(int number) {
        int place = fields + 2 * number;
        int offset = place + 2 <= end ? Short.toUnsignedInt(bytes.getShort(place)) : 0;
        return offset == 0 ? -1 : Math.addExact(at, offset);
    }

    /** The position that a field refers to, or -1 when it is absent. */
    private int target(int number) {
        int field = field(number);
        return field < 0 ? -1 : pointed(field);
    }

    private int pointed(int place) {
        return Math.addExact(place, bytes.getInt(place));
    }

    /** Whether a field is present. */
    public boolean has(int number) {
        return field(number) >= 0;
    }

    /** A field of one byte, or {@code otherwise} when it is absent. */
    public int byteAt(int number, int otherwise) {
        int field = field(number);
        return field < 0 ? otherwise : bytes.get(field);
    }

    /** A field of two bytes, or {@code otherwise} when it is absent. */
    public int shortAt(int number, int otherwise) {
        int field = field(number);
        return field < 0 ? otherwise : bytes.getShort(field);
    }

    /** A field of four bytes, or {@code otherwise} when it is absent. */
    public int intAt(int number, int otherwise) {
        int field = field(number);
        return field < 0 ? otherwise : bytes.getInt(field);
    }

    /** A field of eight bytes, or {@code otherwise} when it is absent. */
    public long longAt(int number, long otherwise) {
        int field = field(number);
        return field < 0 ? otherwise : bytes.getLong(field);
    }

    /** A floating-point field, or {@code otherwise} when it is absent. */
    public float floatAt(int number, float otherwise) {
        int field = field(number);
        return field < 0 ? otherwise : bytes.getFloat(field);
    }

    /** A floating-point field of eight bytes, or {@code otherwise} when it is absent. */
    public double doubleAt(int number, double otherwise) {
        int field = field(number);
        return field < 0 ? otherwise : bytes.getDouble(field);
    }

    /** A table that a field refers to; null when it is absent. */
    public @Nullable FlatBuffersTable table(int number) {
        int target = target(number);
        return target < 0 ? null : new FlatBuffersTable(message, target);
    }

    /** A text; empty when it is absent. */
    public String text(int number) {
        int target = target(number);
        return target < 0 ? "" : textAt(target);
    }

    private String textAt(int target) {
        byte[] text = new byte[length(target, 1)];
        bytes.get(target + 4, text);
        return new String(text, StandardCharsets.UTF_8);
    }

    /** The number of elements of a vector, checked against the bytes that are there. */
    private int length(int target, int width) {
        int length = bytes.getInt(target);
        if (length < 0 || (long) length * width > bytes.limit() - target - 4L) {
            throw message.damaged.apply("a vector of " + Integer.toUnsignedString(length) + " elements is cut off");
        }
        message.left -= (long) length * width;
        if (message.left < 0) {
            throw message.damaged.apply("its vectors overlap");
        }
        return length;
    }

    /** The elements of a vector of numbers or structs, {@code width} bytes each, little-endian; empty when it is absent. */
    public ByteBuffer vector(int number, int width) {
        int target = target(number);
        int size = target < 0 ? 0 : length(target, width) * width;
        return bytes.slice(target < 0 ? 0 : target + 4, size).order(ByteOrder.LITTLE_ENDIAN);
    }

    /** The tables of a vector; empty when it is absent. */
    public List<FlatBuffersTable> tables(int number) {
        ByteBuffer places = vector(number, 4);
        int first = target(number) + 4;
        List<FlatBuffersTable> tables = new ArrayList<>(places.limit() / 4);
        for (int i = 0; i < places.limit(); i += 4) {
            tables.add(new FlatBuffersTable(message, pointed(first + i)));
        }
        return tables;
    }

    /** The texts of a vector; empty when it is absent. */
    public List<String> texts(int number) {
        ByteBuffer places = vector(number, 4);
        int first = target(number) + 4;
        List<String> texts = new ArrayList<>(places.limit() / 4);
        for (int i = 0; i < places.limit(); i += 4) {
            texts.add(textAt(pointed(first + i)));
        }
        return texts;
    }

    /** The elements of a vector of 32-bit numbers; empty when it is absent. */
    public int[] ints(int number) {
        ByteBuffer vector = vector(number, Integer.BYTES);
        int[] values = new int[vector.limit() / Integer.BYTES];
        vector.asIntBuffer().get(values);
        return values;
    }

    /** The elements of a vector of floating-point numbers; empty when it is absent. */
    public float[] floats(int number) {
        ByteBuffer vector = vector(number, Float.BYTES);
        float[] values = new float[vector.limit() / Float.BYTES];
        vector.asFloatBuffer().get(values);
        return values;
    }

    /** The elements of a vector of floating-point numbers of eight bytes; empty when it is absent. */
    public double[] doubles(int number) {
        ByteBuffer vector = vector(number, Double.BYTES);
        double[] values = new double[vector.limit() / Double.BYTES];
        vector.asDoubleBuffer().get(values);
        return values;
    }
}
