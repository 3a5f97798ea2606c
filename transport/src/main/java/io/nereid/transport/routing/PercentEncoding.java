// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transport.routing;

import io.nereid.base.ServingException;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/** Percent-decoding of paths and queries, percent-encoding of gRPC status messages. Holds no state. */
public final class PercentEncoding {
    private static final String HEX = "0123456789ABCDEF";

    private PercentEncoding() {}

    /**
     * Decodes {@code %XX} as UTF-8 and, if {@code plus}, {@code +} to a space.
     *
     * @throws ServingException INVALID_ARGUMENT when malformed
     */
    public static String decode(String s, boolean plus) {
        if (s.indexOf('%') < 0 && !(plus && s.indexOf('+') >= 0)) {
            return s;
        }
        byte[] out = new byte[s.length()];
        int n = 0;
        for (int i = 0; i < s.length(); i++) {
            char c = s.charAt(i);
            if (c == '%') {
                int high = digitAt(s, i + 1);
                int low = digitAt(s, i + 2);
                if (high < 0 || low < 0) {
                    throw ServingException.invalidArgument(
                            "malformed escape in '" + s + "' at position " + i + " (expected: % and two hex digits)");
                }
                out[n++] = (byte) (high << 4 | low);
                i += 2;
            } else {
                out[n++] = (byte) (plus && c == '+' ? ' ' : c);
            }
        }
        try {
            return StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(out, 0, n))
                    .toString();
        } catch (CharacterCodingException e) {
            throw ServingException.invalidArgument("'" + s + "' does not decode to UTF-8");
        }
    }

    private static int digitAt(String s, int i) {
        return i < s.length() ? Character.digit(s.charAt(i), 16) : -1;
    }

    /** A text as a {@code grpc-message} value: {@code %} and everything but printable ASCII is escaped. */
    public static String encode(String s) {
        boolean plain = true;
        for (int i = 0; i < s.length() && plain; i++) {
            char c = s.charAt(i);
            plain = c >= ' ' && c <= '~' && c != '%';
        }
        if (plain) {
            return s;
        }
        StringBuilder b = new StringBuilder(s.length() + 16);
        for (byte x : s.getBytes(StandardCharsets.UTF_8)) {
            if (x >= ' ' && x <= '~' && x != '%') {
                b.append((char) x);
            } else {
                b.append('%').append(HEX.charAt(x >> 4 & 15)).append(HEX.charAt(x & 15));
            }
        }
        return b.toString();
    }
}
