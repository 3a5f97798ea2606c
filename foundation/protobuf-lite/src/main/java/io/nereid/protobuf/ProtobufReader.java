// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protobuf;

import io.nereid.base.ServingException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Reads the protobuf wire format from a buffer, by absolute positions and without copies. Reads fail at the end of the
 * current range, which the caller sets with {@link #range} or {@link #enter}. Confined to one thread.
 *
 * <pre>{@code
 * reader.reset(region.nio(0, region.size()));
 * while (reader.hasMore()) {
 *     int tag = reader.readTag();
 *     if (tag == (1 << 3 | ProtobufReader.VARINT)) {
 *         version = reader.readVarint();
 *     } else {
 *         reader.skipField(tag);
 *     }
 * }
 * }</pre>
 */
public final class ProtobufReader {
    public static final int VARINT = 0;
    public static final int FIXED64 = 1;
    public static final int BYTES = 2;
    public static final int GROUP = 3;
    public static final int END_GROUP = 4;
    public static final int FIXED32 = 5;

    private static final ByteBuffer NOTHING = ByteBuffer.allocate(0).order(ByteOrder.LITTLE_ENDIAN);
    private static final int MAX_DEPTH = 100;

    private ByteBuffer buffer = NOTHING;
    private int position;
    private int end;

    /** Begins at the start of a little-endian buffer. */
    public void reset(ByteBuffer message) {
        buffer = message;
        position = 0;
        end = message.limit();
    }

    /** Drops the reference to the buffer. */
    public void clear() {
        reset(NOTHING);
    }

    public ByteBuffer buffer() {
        return buffer;
    }

    public int position() {
        return position;
    }

    public int end() {
        return end;
    }

    /** Continues at {@code from} and stops at {@code to}. */
    public void range(int from, int to) {
        position = from;
        end = to;
    }

    public boolean hasMore() {
        return position < end;
    }

    private static ServingException malformed(String what, int at) {
        return ServingException.invalidArgument("malformed protobuf message: " + what + " at byte " + at);
    }

    /** Reads a tag: the field number shifted left by 3, plus the wire type. */
    public int readTag() {
        int at = position;
        long tag = readVarint();
        // as the parsers of the protobuf project do, take the low 32 bits of an overlong tag
        int t = (int) tag;
        if (t >>> 3 == 0) {
            throw malformed("field number 0", at);
        }
        return t;
    }

    public long readVarint() {
        long value = 0;
        int at = position;
        for (int shift = 0; shift < 70; shift += 7) {
            if (at >= end) {
                throw malformed("the message ends inside a number", position);
            }
            byte b = buffer.get(at++);
            value |= (long) (b & 0x7F) << shift;
            if (b >= 0) {
                position = at;
                return value;
            }
        }
        throw malformed("a number of more than 10 bytes", position);
    }

    public int readFixed32() {
        need(4);
        int value = buffer.getInt(position);
        position += 4;
        return value;
    }

    public long readFixed64() {
        need(8);
        long value = buffer.getLong(position);
        position += 8;
        return value;
    }

    private void need(int bytes) {
        if (end - position < bytes) {
            throw malformed("the message ends inside a value", position);
        }
    }

    /**
     * Reads the length of the bytes that begin at {@link #position()} when this method returns. All of them are within
     * the range.
     */
    public int readLength() {
        int at = position;
        long length = readVarint();
        // lengths have 32 bits; a parser that truncates a longer one would read another message than this one does
        if (length < 0 || length > end - position) {
            throw malformed(
                    "a length of " + Long.toUnsignedString(length) + " bytes where " + (end - position) + " are left",
                    at);
        }
        return (int) length;
    }

    /** Enters the next nested message or packed list. The returned value must be passed to {@link #leave(int)}. */
    public int enter() {
        int length = readLength();
        int outer = end;
        end = position + length;
        return outer;
    }

    /** Moves behind the message that was entered, regardless of where reading stopped in it. */
    public void leave(int outer) {
        position = end;
        end = outer;
    }

    /** Skips bytes. */
    public void skip(int bytes) {
        position += bytes;
    }

    public String readText(StringInterner names) {
        int length = readLength();
        String text = names.text(buffer, position, length);
        position += length;
        return text;
    }

    /** Skips the value of an unknown field, or of one with an unexpected wire type. */
    public void skipField(int tag) {
        skipField(tag, 0);
    }

    private void skipField(int tag, int depth) {
        switch (tag & 7) {
            case VARINT -> readVarint();
            case FIXED64 -> {
                need(8);
                position += 8;
            }
            case BYTES -> {
                int length = readLength();
                position += length;
            }
            case GROUP -> {
                if (depth >= MAX_DEPTH) {
                    throw malformed("groups nested too deeply", position);
                }
                int closing = tag & ~7 | END_GROUP;
                for (int inner = readTag(); inner != closing; inner = readTag()) {
                    skipField(inner, depth + 1);
                }
            }
            case FIXED32 -> {
                need(4);
                position += 4;
            }
            default -> throw malformed("wire type " + (tag & 7), position);
        }
    }
}
