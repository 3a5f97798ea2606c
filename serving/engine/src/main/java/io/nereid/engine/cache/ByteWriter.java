// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.cache;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Map;
import java.util.TreeMap;

/** Writes little-endian numbers and length-prefixed strings to a growing array. Confined to one thread. */
final class ByteWriter {
    private static final int BOOLEAN = 0;
    private static final int LONG = 1;
    private static final int DOUBLE = 2;
    private static final int STRING = 3;

    private byte[] bytes;
    private int size;

    ByteWriter(int capacity) {
        this.bytes = new byte[capacity];
    }

    int size() {
        return size;
    }

    byte[] toArray() {
        return size == bytes.length ? bytes : Arrays.copyOf(bytes, size);
    }

    /** Appends {@code length} uninitialised bytes and returns the position of the first one. */
    int skip(int length) {
        if (size + length > bytes.length) {
            bytes = Arrays.copyOf(bytes, Math.max(size + length, 2 * bytes.length));
        }
        int at = size;
        size += length;
        return at;
    }

    /** The internal array; it changes with every write. */
    byte[] array() {
        return bytes;
    }

    void putByte(int value) {
        int at = skip(1);
        bytes[at] = (byte) value;
    }

    void putInt(int value) {
        int at = skip(4);
        for (int i = 0; i < 4; i++) {
            bytes[at + i] = (byte) (value >>> 8 * i);
        }
    }

    void putLong(long value) {
        int at = skip(8);
        for (int i = 0; i < 8; i++) {
            bytes[at + i] = (byte) (value >>> 8 * i);
        }
    }

    void putBytes(byte[] value) {
        int at = skip(value.length);
        System.arraycopy(value, 0, bytes, at, value.length);
    }

    void putText(String value) {
        byte[] utf8 = value.getBytes(StandardCharsets.UTF_8);
        putInt(utf8.length);
        putBytes(utf8);
    }

    /**
     * Writes parameters sorted by name, so that equal maps give equal bytes. Values are Boolean, Long, Double or
     * String.
     */
    void putParameters(Map<String, Object> parameters) {
        putInt(parameters.size());
        if (parameters.isEmpty()) {
            return;
        }
        new TreeMap<>(parameters).forEach((name, value) -> {
            putText(name);
            if (value instanceof Boolean b) {
                putByte(BOOLEAN);
                putByte(b ? 1 : 0);
            } else if (value instanceof Long l) {
                putByte(LONG);
                putLong(l);
            } else if (value instanceof Double d) {
                putByte(DOUBLE);
                putLong(Double.doubleToLongBits(d));
            } else {
                putByte(STRING);
                putText(value.toString());
            }
        });
    }
}
