// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.textformat;

import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.SourcePosition;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;

/**
 * Splits a text in protobuf's text format into tokens, in time linear in its length. Confined to one thread.
 */
public final class TextFormatLexer {
    /** The kinds of tokens. */
    public enum Kind {
        WORD,
        NUMBER,
        STRING,
        /** One of the characters {@code {}<>[]:,;-./}. */
        SIGN,
        END
    }

    /**
     * A token.
     *
     * @param kind its kind
     * @param text the characters; of a string, its unescaped contents
     * @param at its start
     */
    public record Token(Kind kind, String text, SourcePosition at) {
        public boolean is(char sign) {
            return kind == Kind.SIGN && text.charAt(0) == sign;
        }

        /** For messages. */
        String shown() {
            return kind == Kind.END ? "the end of the file" : ProblemCollector.quote(text);
        }
    }

    private final String text;
    private int pos;
    private int line = 1;
    private int lineStart;

    public TextFormatLexer(String text) {
        this.text = text;
        if (text.startsWith("\uFEFF")) {
            pos = 1;
            lineStart = 1;
        }
    }

    public Token next() throws TextFormatException {
        skipBlank();
        SourcePosition at = here();
        if (pos >= text.length()) {
            return new Token(Kind.END, "", at);
        }
        char c = text.charAt(pos);
        int start = pos;
        if (isLetter(c)) {
            while (pos < text.length() && (isLetter(text.charAt(pos)) || isDigit(text.charAt(pos)))) {
                pos++;
            }
            return new Token(Kind.WORD, text.substring(start, pos), at);
        }
        if (isDigit(c) || (c == '.' && pos + 1 < text.length() && isDigit(text.charAt(pos + 1)))) {
            return number(start, at);
        }
        if (c == '"' || c == '\'') {
            return string(c, at);
        }
        if ("{}<>[]:,;-./".indexOf(c) >= 0) {
            pos++;
            return new Token(Kind.SIGN, String.valueOf(c), at);
        }
        int end = text.offsetByCodePoints(pos, 1);
        throw new TextFormatException(
                at,
                "unexpected character " + ProblemCollector.quote(text.substring(pos, end)),
                c == '=' ? "write 'field: value'" : "remove it, or put it into quotes if it belongs to a string");
    }

    private void skipBlank() {
        while (pos < text.length()) {
            char c = text.charAt(pos);
            if (c == '#') {
                while (pos < text.length() && text.charAt(pos) != '\n') {
                    pos++;
                }
            } else if (c == '\n') {
                pos++;
                line++;
                lineStart = pos;
            } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == 0x0b) {
                pos++;
            } else {
                return;
            }
        }
    }

    private SourcePosition here() {
        return new SourcePosition(line, pos - lineStart + 1);
    }

    /** Reads the longest text that may be a number; {@link ConfigBinder} validates it by the field's type. */
    private Token number(int start, SourcePosition at) throws TextFormatException {
        boolean hex = text.startsWith("0x", pos) || text.startsWith("0X", pos);
        while (pos < text.length()) {
            char c = text.charAt(pos);
            boolean exponentSign =
                    (c == '-' || c == '+') && !hex && (text.charAt(pos - 1) == 'e' || text.charAt(pos - 1) == 'E');
            if (!isDigit(c) && !isLetter(c) && c != '.' && !exponentSign) {
                break;
            }
            pos++;
        }
        if (pos - start > 400) {
            throw new TextFormatException(at, "a number of " + (pos - start) + " characters", "shorten it");
        }
        return new Token(Kind.NUMBER, text.substring(start, pos), at);
    }

    private Token string(char quote, SourcePosition at) throws TextFormatException {
        pos++;
        ByteArrayOutputStream bytes = new ByteArrayOutputStream();
        int plain = pos;
        while (true) {
            if (pos >= text.length() || text.charAt(pos) == '\n') {
                throw new TextFormatException(
                        at, "the string that starts here has no end", "close it with " + quote + " on the same line");
            }
            char c = text.charAt(pos);
            if (c == quote || c == '\\') {
                bytes.writeBytes(text.substring(plain, pos).getBytes(StandardCharsets.UTF_8));
                if (c == quote) {
                    break;
                }
                escape(bytes);
                plain = pos;
            } else {
                pos++;
            }
        }
        pos++;
        try {
            String value = StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(bytes.toByteArray()))
                    .toString();
            return new Token(Kind.STRING, value, at);
        } catch (CharacterCodingException e) {
            throw new TextFormatException(
                    at, "the string that starts here is not valid UTF-8", "correct its escape sequences");
        }
    }

    private void escape(ByteArrayOutputStream bytes) throws TextFormatException {
        SourcePosition at = here();
        pos++;
        char c = pos < text.length() ? text.charAt(pos) : '\n';
        int simple = "abfnrtv\\'\"?".indexOf(c);
        if (simple >= 0) {
            pos++;
            bytes.write("\u0007\b\f\n\r\t\u000b\\'\"?".charAt(simple));
        } else if (c >= '0' && c <= '7') {
            int value = 0;
            for (int i = 0; i < 3 && pos < text.length() && text.charAt(pos) >= '0' && text.charAt(pos) <= '7'; i++) {
                value = value * 8 + (text.charAt(pos++) - '0');
            }
            bytes.write(value);
        } else if (c == 'x' || c == 'X') {
            pos++;
            bytes.write(hex(at, 1, 2));
        } else if (c == 'u' || c == 'U') {
            pos++;
            int point = c == 'u' ? hex(at, 4, 4) : hex(at, 8, 8);
            if (!Character.isValidCodePoint(point) || (point >= 0xd800 && point <= 0xdfff)) {
                throw new TextFormatException(
                        at, "an escape that is not a Unicode character", "write the character itself");
            }
            bytes.writeBytes(Character.toString(point).getBytes(StandardCharsets.UTF_8));
        } else {
            throw new TextFormatException(
                    at,
                    "unknown escape " + ProblemCollector.quote("\\" + (c == '\n' ? "" : String.valueOf(c))),
                    "write \\\\ for a backslash");
        }
    }

    private int hex(SourcePosition at, int least, int most) throws TextFormatException {
        int value = 0;
        int digits = 0;
        while (digits < most
                && pos < text.length()
                && Character.digit(text.charAt(pos), 16) >= 0
                && text.charAt(pos) < 128) {
            value = value * 16 + Character.digit(text.charAt(pos++), 16);
            digits++;
        }
        if (digits < least) {
            throw new TextFormatException(
                    at, "an escape with " + digits + " hexadecimal digits (expected: " + least + ")", "complete it");
        }
        return value;
    }

    private static boolean isLetter(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    }

    private static boolean isDigit(char c) {
        return c >= '0' && c <= '9';
    }
}
