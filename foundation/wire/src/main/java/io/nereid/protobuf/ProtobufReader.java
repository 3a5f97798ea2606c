// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protobuf;

import io.nereid.base.ServingException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Reads the protobuf wire format from a buffer, by absolute positions and without copies. The caller sets the range and is
 * stopped at its end. Confined to one thread.
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

    /** Stands at the start of a little-endian buffer. */
    public void reset(ByteBuffer message) {
        buffer = message;
        position = 0;
        end = message.limit();
    }

    /** Lets go of the buffer. */
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

    /** Goes on at {@code from} and stops at {@code to}. */
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

    /** The next field's number and wire type, as on the wire. */
    public int readTag() {
        int at = position;
        long tag = readVarint();
        // Like every parser, take the low 32 bits of an overlong tag.
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

    /** The length of the bytes that begin at {@link #position()} once this returns; they are all there. */
    public int readLength() {
        int at = position;
        long length = readVarint();
        // Lengths are 32-bit; a parser that truncates would read another message than we do.
        if (length < 0 || length > end - position) {
            throw malformed(
                    "a length of " + Long.toUnsignedString(length) + " bytes where " + (end - position) + " are left",
                    at);
        }
        return (int) length;
    }

    /** Goes into the message or packed list that comes next, length first; what is returned goes to {@link #leave(int)}. */
    public int enter() {
        int length = readLength();
        int outer = end;
        end = position + length;
        return outer;
    }

    /** Stands behind what was entered, wherever in it reading stopped. */
    public void leave(int outer) {
        position = end;
        end = outer;
    }

    /** Passes over bytes. */
    public void skip(int bytes) {
        position += bytes;
    }

    public String readText(StringInterner names) {
        int length = readLength();
        String text = names.text(buffer, position, length);
        position += length;
        return text;
    }

    /** Passes over the value of a field that is not known, or whose wire type does not fit. */
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
