// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protobuf;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Writes the protobuf wire format into a growing array that is reused. Confined to one thread.
 *
 * <pre>{@code
 * ProtobufWriter w = new ProtobufWriter();
 * w.reset(1 << 20);
 * w.textField(1, "iris");
 * int mark = w.begin(2);                             // a nested message
 * w.varintField(1, 3);
 * w.end(mark);
 * byte[] message = w.toByteArray();
 * }</pre>
 */
public final class ProtobufWriter {
    private byte[] bytes = new byte[1024];
    private int length;

    /** Clears the message; an array of more than {@code keep} bytes is replaced by a small one. */
    public void reset(int keep) {
        if (bytes.length > keep) {
            bytes = new byte[1024];
        }
        length = 0;
    }

    /** The internal array; valid until the next write. */
    public byte[] array() {
        return bytes;
    }

    public int length() {
        return length;
    }

    private void ensure(int more) {
        if (bytes.length - length < more) {
            long wanted = Math.max((long) length + more, bytes.length * 2L);
            if ((long) length + more > Integer.MAX_VALUE - 16) {
                throw new IllegalStateException("a message of 2 GiB or more");
            }
            bytes = Arrays.copyOf(bytes, (int) Math.min(wanted, Integer.MAX_VALUE - 16));
        }
    }

    private static int tag(int field, int wireType) {
        return field << 3 | wireType;
    }

    public void varint(long value) {
        ensure(10);
        long v = value;
        while ((v & ~0x7FL) != 0) {
            bytes[length++] = (byte) (v | 0x80);
            v >>>= 7;
        }
        bytes[length++] = (byte) v;
    }

    public void varintField(int field, long value) {
        varint(tag(field, ProtobufReader.VARINT));
        varint(value);
    }

    public void floatField(int field, float value) {
        varint(tag(field, ProtobufReader.FIXED32));
        fixed32(Float.floatToRawIntBits(value));
    }

    public void doubleField(int field, double value) {
        varint(tag(field, ProtobufReader.FIXED64));
        fixed64(Double.doubleToRawLongBits(value));
    }

    public void fixed64(long v) {
        fixed32((int) v);
        fixed32((int) (v >>> 32));
    }

    public void fixed32(int v) {
        ensure(4);
        bytes[length] = (byte) v;
        bytes[length + 1] = (byte) (v >>> 8);
        bytes[length + 2] = (byte) (v >>> 16);
        bytes[length + 3] = (byte) (v >>> 24);
        length += 4;
    }

    /** Writes a string field; omits it when the string is empty, as proto3 does. */
    public void textField(int field, String text) {
        if (!text.isEmpty()) {
            presentTextField(field, text);
        }
    }

    /** Writes a string field, also an empty one. */
    public void presentTextField(int field, String text) {
        int n = text.length();
        varint(tag(field, ProtobufReader.BYTES));
        // short ASCII, the usual case, is written without an intermediate array: its length takes one byte
        // short ASCII, the usual case, is written without an intermediate array: its length takes one byte
        if (n < 128) {
            ensure(1 + n);
            int at = length + 1;
            int i = 0;
            while (i < n && text.charAt(i) < 0x80) {
                bytes[at + i] = (byte) text.charAt(i);
                i++;
            }
            if (i == n) {
                bytes[length] = (byte) n;
                length = at + n;
                return;
            }
        }
        byte[] utf8 = text.getBytes(StandardCharsets.UTF_8);
        varint(utf8.length);
        ensure(utf8.length);
        System.arraycopy(utf8, 0, bytes, length, utf8.length);
        length += utf8.length;
    }

    /** Writes the tag and the length of a bytes field; the caller writes the bytes. */
    public void bytesHeader(int field, int size) {
        varint(tag(field, ProtobufReader.BYTES));
        varint(size);
    }

    /** Writes a bytes field, also an empty one. */
    public void bytesField(int field, byte[] value) {
        bytesHeader(field, value.length);
        int at = reserve(value.length);
        System.arraycopy(value, 0, bytes, at, value.length);
    }

    /** Returns a copy of the message. */
    public byte[] toByteArray() {
        return Arrays.copyOf(bytes, length);
    }

    /** Appends {@code size} uninitialised bytes and returns the position of the first one; the caller fills them in. */
    public int reserve(int size) {
        ensure(size);
        int at = length;
        length += size;
        return at;
    }

    /** Begins a nested message or a packed list. The returned mark must be passed to {@link #end(int)}. */
    public int begin(int field) {
        varint(tag(field, ProtobufReader.BYTES));
        ensure(1);
        return length++;
    }

    /**
     * Ends the nested message that began at {@code mark} and writes its length. One byte was reserved for the length;
     * the content is shifted when the length needs more.
     */
    public void end(int mark) {
        end(mark, 0);
    }

    /**
     * As {@link #end(int)}, for a message whose last {@code more} bytes are not written here but appended by the
     * sender.
     */
    public void end(int mark, int more) {
        int size = length - mark - 1;
        long whole = (long) size + more;
        if (whole > Integer.MAX_VALUE - 16) {
            throw new IllegalStateException("a message of 2 GiB or more");
        }
        int extra = 0;
        for (int n = (int) whole >>> 7; n != 0; n >>>= 7) {
            extra++;
        }
        if (extra > 0) {
            ensure(extra);
            System.arraycopy(bytes, mark + 1, bytes, mark + 1 + extra, size);
        }
        int end = length + extra;
        length = mark;
        varint(whole);
        length = end;
    }
}
