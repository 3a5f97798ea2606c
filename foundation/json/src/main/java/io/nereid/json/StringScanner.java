// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Scans JSON strings and keeps the last one as a range of bytes: of the document itself, or of a scratch array when
 * the string contains escapes. Confined to one reader.
 */
final class StringScanner {
    /** The array that holds the last text as UTF-8, from {@link #from} for {@link #length} bytes. */
    byte[] bytes = {};

    int from;
    int length;

    private final JsonReader reader;
    private final ByteSink unescaped = new ByteSink(256);
    private byte[] buffer = {};
    private int end;

    StringScanner(JsonReader reader) {
        this.reader = reader;
    }

    /** Begins a document that ends at {@code end}. */
    void reset(byte[] buffer, int end) {
        this.buffer = buffer;
        this.end = end;
        bytes = buffer;
        from = end;
        length = 0;
        unescaped.shrinkTo(1 << 16);
    }

    boolean equalTo(byte[] utf8) {
        return Arrays.equals(bytes, from, from + length, utf8, 0, utf8.length);
    }

    boolean equalTo(String s) {
        int n = s.length();
        if (n > length) {
            return false;
        }
        byte[] b = bytes;
        for (int i = 0; i < n; i++) {
            int c = s.charAt(i);
            if (c >= 0x80) {
                return equalTo(s.getBytes(StandardCharsets.UTF_8));
            }
            if (b[from + i] != c) {
                return false;
            }
        }
        return n == length;
    }

    String asString() {
        return new String(bytes, from, length, StandardCharsets.UTF_8);
    }

    /** Scans the string whose opening quote is at {@code quote}; returns the position after the closing quote. */
    int scan(int quote) {
        byte[] b = buffer;
        int p = quote + 1;
        for (; ; ) {
            p = Utf8.skipPlain(b, p, end);
            int c = b[p];
            if (c == '"') {
                bytes = b;
                from = quote + 1;
                length = p - quote - 1;
                return p + 1;
            }
            if (c == '\\') {
                return scanEscaped(quote, p);
            }
            p += wideCharacter(quote, p);
        }
    }

    private int scanEscaped(int quote, int firstEscape) {
        byte[] b = buffer;
        ByteSink sink = unescaped;
        sink.reset();
        int run = quote + 1;
        int p = firstEscape;
        for (; ; ) {
            int c = b[p];
            if (c == '"') {
                sink.append(b, run, p - run);
                bytes = sink.array();
                from = 0;
                length = sink.length();
                return p + 1;
            }
            if (c == '\\') {
                sink.append(b, run, p - run);
                p = unescape(p, sink);
                run = p;
            } else {
                p += wideCharacter(quote, p);
            }
            p = Utf8.skipPlain(b, p, end);
        }
    }

    private int unescape(int at, ByteSink sink) {
        byte[] b = buffer;
        int c = b[at + 1];
        int simple;
        switch (c) {
            case '"':
            case '\\':
            case '/':
                simple = c;
                break;
            case 'b':
                simple = '\b';
                break;
            case 'f':
                simple = '\f';
                break;
            case 'n':
                simple = '\n';
                break;
            case 'r':
                simple = '\r';
                break;
            case 't':
                simple = '\t';
                break;
            case 'u':
                return unescapeUnit(at, sink);
            default:
                throw reader.unexpected(at + 1, "one of \" \\ / b f n r t u after the backslash");
        }
        sink.append((byte) simple);
        return at + 2;
    }

    private int unescapeUnit(int at, ByteSink sink) {
        int codePoint = hex4(at + 2);
        int p = at + 6;
        if (codePoint >= 0xD800 && codePoint <= 0xDFFF) {
            boolean paired = codePoint <= 0xDBFF && buffer[p] == '\\' && buffer[p + 1] == 'u';
            int low = paired ? hex4(p + 2) : 0;
            if (low < 0xDC00 || low > 0xDFFF) {
                throw reader.error(
                        "lone surrogate" + reader.at(at) + " (expected: a pair from \\ud800\\udc00 to \\udbff\\udfff)");
            }
            codePoint = Character.toCodePoint((char) codePoint, (char) low);
            p += 6;
        }
        sink.ensureWritable(4);
        sink.advanceTo(Utf8.put(sink.array(), sink.length(), codePoint));
        return p;
    }

    private int hex4(int at) {
        int v = 0;
        for (int i = 0; i < 4; i++) {
            int digit = Character.digit(buffer[at + i], 16);
            if (digit < 0) {
                throw reader.unexpected(at + i, "four hexadecimal digits after \\u");
            }
            v = v << 4 | digit;
        }
        return v;
    }

    /** Validates the character at {@code p}, at which a run of plain ASCII characters ended, and returns its length. */
    private int wideCharacter(int quote, int p) {
        int c = buffer[p];
        if (p >= end) {
            throw reader.error("unexpected end of the document" + reader.at(p) + " in the string that begins"
                    + reader.at(quote) + " (expected: a closing quote)");
        }
        if (c >= 0) {
            throw reader.error("control character 0x" + Integer.toHexString(c) + reader.at(p)
                    + " in a string (expected: an escape)");
        }
        int n = Utf8.sequenceLength(buffer, p, end);
        if (n == 0) {
            throw reader.error("byte 0x" + Integer.toHexString(c & 0xFF) + reader.at(p)
                    + " is not valid UTF-8 (expected: UTF-8 text)");
        }
        return n;
    }
}
