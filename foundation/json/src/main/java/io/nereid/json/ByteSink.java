// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.number.LittleEndian;
import java.nio.ByteBuffer;
import java.util.Arrays;
import java.util.Objects;

/** A growing byte array that is reused. Confined to one thread. */
public final class ByteSink {
    /** The most bytes of one text: a larger one would leave too little of the heap, whose exhaustion ends the process. */
    static final int MAX_CAPACITY =
            (int) Math.min(Integer.MAX_VALUE - 16, Runtime.getRuntime().maxMemory() / 4);

    private byte[] bytes;
    private int length;

    /** Creates an empty sink with an initial capacity. */
    public ByteSink(int initialCapacity) {
        bytes = new byte[initialCapacity];
    }

    /** Removes the content and keeps the array. */
    public void reset() {
        length = 0;
    }

    /** The number of bytes in the sink. */
    public int length() {
        return length;
    }

    /** The internal array: the content is in [0, {@link #length()}). Valid until the next append. */
    public byte[] array() {
        return bytes;
    }

    /** Appends one byte. */
    public void append(byte b) {
        if (length == bytes.length) {
            grow(1);
        }
        bytes[length++] = b;
    }

    /** Appends {@code count} bytes of {@code src}, beginning at {@code from}. */
    public void append(byte[] src, int from, int count) {
        ensureWritable(count);
        System.arraycopy(src, from, bytes, length, count);
        length += count;
    }

    /** Appends a 4-byte little-endian integer. */
    public void appendIntLE(int v) {
        ensureWritable(4);
        LittleEndian.putInt(bytes, length, v);
        length += 4;
    }

    /**
     * Ensures capacity for {@code count} more bytes.
     *
     * @throws ServingException RESOURCE_EXHAUSTED when the content would exceed a quarter of the heap, or 2 GiB
     */
    public void ensureWritable(int count) {
        if (bytes.length - length < count) {
            grow(count);
        }
    }

    /** Shortens the content to its first {@code newLength} bytes. */
    public void truncate(int newLength) {
        Objects.checkIndex(newLength, length + 1);
        length = newLength;
    }

    /** Copies the content to {@code dst} at the absolute position {@code dstPos}. */
    public void copyTo(ByteBuffer dst, int dstPos) {
        dst.put(dstPos, bytes, 0, length);
    }

    /** Removes the content and, when the capacity exceeds {@code maxCapacity}, reduces it to that. */
    public void shrinkTo(int maxCapacity) {
        length = 0;
        if (bytes.length > maxCapacity) {
            bytes = new byte[maxCapacity];
        }
    }

    /** Sets the length after the caller has written directly to {@link #array()}. */
    void advanceTo(int newLength) {
        length = newLength;
    }

    /** Overwrites four bytes that were appended earlier. */
    void setIntLE(int at, int v) {
        LittleEndian.putInt(bytes, at, v);
    }

    private void grow(int count) {
        long needed = (long) length + count;
        if (needed > MAX_CAPACITY) {
            throw ServingException.of(
                    ErrorCode.RESOURCE_EXHAUSTED,
                    "a JSON value needs " + needed + " bytes of memory (expected: <= " + MAX_CAPACITY + ")");
        }
        long target = Math.min(MAX_CAPACITY, Math.max(needed, 2L * bytes.length));
        bytes = Arrays.copyOf(bytes, (int) target);
    }
}
