// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.json;

import org.jspecify.annotations.Nullable;

/**
 * Turns the JSON that protobuf's parser takes into standard JSON. Its function {@code JsonStringToMessage} accepts, from
 * its earlier versions, strings in single quotes, the escapes {@code \'} and {@code \U}, control characters in strings,
 * keys without quotes, and a comma after the last value. Other deviations stay as they are, so that {@link JsonReader}
 * reports them. Lines stay the same. Confined to one thread, one text each.
 *
 * <pre>{@code
 * LenientJson.standard("{max_batch_size: 4, backend: 'onnxruntime',}"); // {"max_batch_size": 4, "backend": "onnxruntime" }
 * }</pre>
 */
public final class LenientJson {
    private final String text;
    /** What has been read, from the first deviation on. */
    private @Nullable StringBuilder out;

    private int at;
    /** The last character outside of strings, white space apart; {@code "} for a string, 0 for none. */
    private char last;

    private LenientJson(String text) {
        this.text = text;
    }

    /** The text as standard JSON; the same object if it is without these deviations. */
    public static String standard(String text) {
        return new LenientJson(text).read();
    }

    private String read() {
        while (at < text.length()) {
            char c = text.charAt(at);
            if (c == '"' || c == '\'') {
                string(c);
                last = '"';
            } else if (word(c) && (last == '{' || last == ',') && isKey()) {
                key();
                last = '"';
            } else {
                boolean needless = c == ',' && last != ',' && last != '[' && last != '{' && last != ':' && closes();
                write(needless ? ' ' : c, c);
                last = isSpace(c) ? last : c;
                at++;
            }
        }
        return out == null ? text : out.toString();
    }

    /** Writes what stands for the character at this position. */
    private void write(char standard, char given) {
        if (standard != given) {
            changed();
        }
        if (out != null) {
            out.append(standard);
        }
    }

    private StringBuilder changed() {
        StringBuilder to = out;
        if (to == null) {
            to = new StringBuilder(text.length() + 16).append(text, 0, at);
            out = to;
        }
        return to;
    }

    private void string(char quote) {
        write('"', quote);
        at++;
        while (at < text.length()) {
            char c = text.charAt(at);
            if (c == quote) {
                write('"', c);
                at++;
                return;
            }
            if (c == '\\' && at + 1 < text.length()) {
                escape(c, text.charAt(at + 1));
                at += 2;
            } else {
                if (c == '"') {
                    changed().append("\\\"");
                } else if (c < ' ') {
                    changed().append(c < 16 ? "\\u000" : "\\u00").append(Integer.toHexString(c));
                } else {
                    write(c, c);
                }
                at++;
            }
        }
    }

    private void escape(char backslash, char c) {
        if (c == '\'') {
            changed().append(c);
        } else if (c == 'U') {
            changed().append("\\u");
        } else {
            write(backslash, backslash);
            write(c, c);
        }
    }

    private void key() {
        StringBuilder to = changed().append('"');
        for (; at < text.length() && word(text.charAt(at)); at++) {
            to.append(text.charAt(at));
        }
        to.append('"');
    }

    /** Whether the word at this position is a key without quotes. */
    private boolean isKey() {
        int end = at;
        while (end < text.length() && word(text.charAt(end))) {
            end++;
        }
        String word = text.substring(at, end);
        return next(end) == ':'
                && !Character.isDigit(word.charAt(0))
                && !word.equals("null")
                && !word.equals("true")
                && !word.equals("false");
    }

    /** Whether an object or array ends after the character at this position. */
    private boolean closes() {
        char c = next(at + 1);
        return c == '}' || c == ']';
    }

    /** The first character from a position on, white space apart; 0 for none. */
    private char next(int from) {
        for (int i = from; i < text.length(); i++) {
            if (!isSpace(text.charAt(i))) {
                return text.charAt(i);
            }
        }
        return 0;
    }

    private static boolean isSpace(char c) {
        return c == ' ' || c == '\n' || c == '\r' || c == '\t';
    }

    private static boolean word(char c) {
        return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    }
}
