// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protobuf;

import io.nereid.base.ServingException;
import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Decodes UTF-8 and returns the same string instance again for short names that occur in every request, which saves
 * garbage and the computation of hash codes. A direct-mapped cache of {@value #SLOTS} strings: a name replaces another
 * one with the same slot. Confined to one thread.
 */
public final class StringInterner {
    private static final int SLOTS = 128;
    private static final int LONGEST = 48;

    private final byte[][] keys = new byte[SLOTS][];
    private final String[] values = new String[SLOTS];
    private byte[] scratch = new byte[256];

    /** Creates an empty cache. */
    public StringInterner() {
        Arrays.fill(keys, new byte[0]);
        Arrays.fill(values, "");
    }

    /**
     * Decodes {@code length} bytes of a buffer.
     *
     * @throws ServingException INVALID_ARGUMENT when they are not valid UTF-8
     */
    public String text(ByteBuffer buffer, int from, int length) {
        if (length == 0) {
            return "";
        }
        if (scratch.length < length) {
            scratch = new byte[Math.max(length, Math.min(length, 1 << 20) * 2)];
        }
        byte[] bytes = scratch;
        buffer.get(from, bytes, 0, length);
        if (length > LONGEST) {
            if (scratch.length > 1 << 20) {
                scratch = new byte[256];
            }
            return decode(bytes, length);
        }
        int hash = 0;
        for (int i = 0; i < length; i++) {
            hash = hash * 31 + bytes[i];
        }
        int slot = (hash ^ hash >>> 7 ^ hash >>> 15) & SLOTS - 1;
        if (Arrays.equals(keys[slot], 0, keys[slot].length, bytes, 0, length)) {
            return values[slot];
        }
        String value = decode(bytes, length);
        keys[slot] = Arrays.copyOf(bytes, length);
        values[slot] = value;
        return value;
    }

    private static String decode(byte[] bytes, int length) {
        int or = 0;
        for (int i = 0; i < length; i++) {
            or |= bytes[i];
        }
        if (or >= 0) {
            return new String(bytes, 0, length, StandardCharsets.ISO_8859_1);
        }
        try {
            CharBuffer chars = StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(bytes, 0, length));
            return chars.toString();
        } catch (CharacterCodingException e) {
            throw ServingException.invalidArgument("a text of the request is not valid UTF-8");
        }
    }
}
