// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import io.nereid.json.number.LittleEndian;

/** Validation and encoding of UTF-8 (Unicode table 3-7). Stateless. */
final class Utf8 {
    private Utf8() {}

    /**
     * Length of the well-formed multi-byte sequence at {@code p}; 0 when the bytes before {@code limit} do not form
     * one. Overlong forms, surrogates and code points above U+10FFFF are not well formed.
     */
    static int sequenceLength(byte[] b, int p, int limit) {
        int lead = b[p] & 0xFF;
        if (lead < 0xC2 || lead > 0xF4) {
            return 0;
        }
        int length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
        if (limit - p < length) {
            return 0;
        }
        int second = b[p + 1] & 0xFF;
        int low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
        int high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
        if (second < low || second > high) {
            return 0;
        }
        for (int i = 2; i < length; i++) {
            if ((b[p + i] & 0xC0) != 0x80) {
                return 0;
            }
        }
        return length;
    }

    /** Writes a code point at {@code p}, at most four bytes, and returns the position after it. */
    static int put(byte[] b, int p, int codePoint) {
        if (codePoint < 0x80) {
            b[p] = (byte) codePoint;
            return p + 1;
        }
        if (codePoint < 0x800) {
            b[p] = (byte) (0xC0 | codePoint >> 6);
            b[p + 1] = (byte) (0x80 | codePoint & 0x3F);
            return p + 2;
        }
        if (codePoint < 0x10000) {
            b[p] = (byte) (0xE0 | codePoint >> 12);
            b[p + 1] = (byte) (0x80 | codePoint >> 6 & 0x3F);
            b[p + 2] = (byte) (0x80 | codePoint & 0x3F);
            return p + 3;
        }
        b[p] = (byte) (0xF0 | codePoint >> 18);
        b[p + 1] = (byte) (0x80 | codePoint >> 12 & 0x3F);
        b[p + 2] = (byte) (0x80 | codePoint >> 6 & 0x3F);
        b[p + 3] = (byte) (0x80 | codePoint & 0x3F);
        return p + 4;
    }

    /**
     * The first position in [p, limit) whose byte is a quote, a backslash, a control character or not ASCII;
     * {@code limit} when all bytes are plain. Checks eight bytes at a time (SWAR); reads up to seven bytes past
     * {@code limit}, never past the array.
     */
    static int skipPlain(byte[] b, int p, int limit) {
        int wide = Math.min(limit, b.length - 7);
        while (p < wide) {
            long v = LittleEndian.getLong(b, p);
            // After the XOR the bytes to find are zero; (x - 1) & ~x sets the top bit of a zero byte. The third term
            // finds bytes below 0x20 in the same way, and v itself has the top bit set for bytes beyond ASCII. A borrow
            // can only mark bytes behind the first match, which is the only one that is used.
            long quote = v ^ 0x2222222222222222L;
            long slash = v ^ 0x5C5C5C5C5C5C5C5CL;
            long stops = (quote - 0x0101010101010101L) & ~quote
                    | (slash - 0x0101010101010101L) & ~slash
                    | (v - 0x2020202020202020L) & ~v
                    | v;
            stops &= 0x8080808080808080L;
            if (stops != 0) {
                return Math.min(limit, p + (Long.numberOfTrailingZeros(stops) >>> 3));
            }
            p += 8;
        }
        while (p < limit && isPlain(b[p])) {
            p++;
        }
        return Math.min(p, limit);
    }

    private static boolean isPlain(byte c) {
        return c >= 0x20 && c != '"' && c != '\\';
    }
}
