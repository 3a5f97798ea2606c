// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1.rest;

import java.io.ByteArrayOutputStream;

/**
 * JSON from JSON or a literal of Python, which differs in what the answers of models have: keys that are numbers, and strings in
 * single quotes. Stateless.
 */
final class LiteralText {
    private LiteralText() {}

    /** @param text a well-formed document in UTF-8 */
    static byte[] toJson(byte[] text) {
        ByteArrayOutputStream out = new ByteArrayOutputStream(text.length + 16);
        int at = 0;
        while (at < text.length) {
            byte c = text[at];
            if (c == '"' || c == '\'') {
                at = string(text, at, out);
            } else if (isNumber(c)) {
                int end = at;
                while (end < text.length && isNumber(text[end])) {
                    end++;
                }
                boolean key = end < text.length && text[end] == ':';
                if (key) {
                    out.write('"');
                }
                out.write(text, at, end - at);
                if (key) {
                    out.write('"');
                }
                at = end;
            } else {
                out.write(c);
                at++;
            }
        }
        return out.toByteArray();
    }

    private static boolean isNumber(byte c) {
        return (c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E';
    }

    /** Copies a string in double quotes; returns the position after it. */
    private static int string(byte[] text, int from, ByteArrayOutputStream out) {
        byte quote = text[from];
        out.write('"');
        int at = from + 1;
        while (at < text.length && text[at] != quote) {
            if (text[at] == '\\' && at + 1 < text.length) {
                if (text[at + 1] != '\'') {
                    out.write('\\');
                }
                at++;
            } else if (text[at] == '"') {
                out.write('\\');
            }
            out.write(text[at++]);
        }
        out.write('"');
        return at + 1;
    }
}
