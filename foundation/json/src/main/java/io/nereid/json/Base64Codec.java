// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import java.util.Arrays;

/** Base64 to and from byte arrays without intermediate strings. Stateless. */
final class Base64Codec {
    private static final byte[] LETTERS = new byte[64];
    private static final byte[] VALUES = new byte[256];

    static {
        String letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        Arrays.fill(VALUES, (byte) -1);
        for (int i = 0; i < 64; i++) {
            LETTERS[i] = (byte) letters.charAt(i);
            VALUES[letters.charAt(i)] = (byte) i;
        }
    }

    private Base64Codec() {}

    /**
     * Decodes base64, appends the bytes to {@code sink} and returns their number; -1 when the text is not base64.
     * Padding may be missing. Errors are collected in the sign bit (invalid letters map to -1) and tested once at the
     * end.
     */
    static int decode(byte[] b, int from, int length, ByteSink sink) {
        int n = length;
        if (n > 0 && n % 4 == 0 && b[from + n - 1] == '=') {
            n -= b[from + n - 2] == '=' ? 2 : 1;
        }
        if (n % 4 == 1) {
            return -1;
        }
        int bytes = (int) (n * 3L / 4);
        sink.ensureWritable(bytes + 4);
        byte[] out = sink.array();
        int o = sink.length();
        int first = o;
        int bad = 0;
        int p = from;
        int whole = from + (n & ~3);
        for (; p < whole; p += 4) {
            int v = VALUES[b[p] & 0xFF] << 18
                    | VALUES[b[p + 1] & 0xFF] << 12
                    | VALUES[b[p + 2] & 0xFF] << 6
                    | VALUES[b[p + 3] & 0xFF];
            bad |= v;
            out[o] = (byte) (v >> 16);
            out[o + 1] = (byte) (v >> 8);
            out[o + 2] = (byte) v;
            o += 3;
        }
        int rest = n & 3;
        if (rest > 0) {
            int third = rest == 3 ? VALUES[b[p + 2] & 0xFF] : 0;
            int v = VALUES[b[p] & 0xFF] << 18 | VALUES[b[p + 1] & 0xFF] << 12 | third << 6;
            bad |= v;
            out[o++] = (byte) (v >> 16);
            if (rest == 3) {
                out[o++] = (byte) (v >> 8);
            }
        }
        if (bad < 0) {
            return -1;
        }
        sink.advanceTo(o);
        return o - first;
    }

    /**
     * Encodes with padding at {@code to[at]}, where the caller has reserved the space; returns the position after it.
     */
    static int encode(byte[] b, int from, int length, byte[] to, int at) {
        int o = at;
        int p = from;
        int end = from + length;
        for (; p + 2 < end; p += 3) {
            int v = (b[p] & 0xFF) << 16 | (b[p + 1] & 0xFF) << 8 | b[p + 2] & 0xFF;
            to[o] = LETTERS[v >> 18];
            to[o + 1] = LETTERS[v >> 12 & 63];
            to[o + 2] = LETTERS[v >> 6 & 63];
            to[o + 3] = LETTERS[v & 63];
            o += 4;
        }
        int rest = end - p;
        if (rest > 0) {
            int v = (b[p] & 0xFF) << 16 | (rest == 2 ? (b[p + 1] & 0xFF) << 8 : 0);
            to[o] = LETTERS[v >> 18];
            to[o + 1] = LETTERS[v >> 12 & 63];
            to[o + 2] = rest == 2 ? LETTERS[v >> 6 & 63] : (byte) '=';
            to[o + 3] = (byte) '=';
            o += 4;
        }
        return o;
    }
}
