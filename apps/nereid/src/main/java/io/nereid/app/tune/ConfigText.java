// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

import java.util.ArrayList;
import java.util.List;

/**
 * The fields of a message in protobuf's text format, changed in place, so that comments, order and layout of the others stay. The
 * message must be valid: the server has read it. Confined to one thread.
 *
 * <p>See <a href="https://protobuf.dev/reference/protobuf/textformat-spec/">the specification of the format</a>.
 */
final class ConfigText {
    private String text;

    /**
     * A field: its name begins at {@code start}, its value is from {@code valueStart} to {@code end}.
     *
     * @param message whether the value is a message or a list
     */
    private record Field(String name, int start, int valueStart, int end, boolean message) {}

    ConfigText(String text) {
        this.text = text;
    }

    String text() {
        return text;
    }

    /** Replaces the value of a field, or adds the field at the end. Further fields of that name are removed. */
    void set(String name, String value) {
        List<Field> found = named(name);
        if (found.isEmpty()) {
            append(name + ": " + value);
            return;
        }
        Field first = found.get(0);
        for (int i = found.size() - 1; i > 0; i--) {
            cut(found.get(i));
        }
        String colon = text.substring(first.start, first.valueStart).contains(":") ? "" : ": ";
        text = text.substring(0, first.valueStart) + colon + value + text.substring(first.end);
    }

    /** Removes a field. */
    void remove(String name) {
        List<Field> found = named(name);
        for (int i = found.size() - 1; i >= 0; i--) {
            cut(found.get(i));
        }
    }

    /** The text between the braces of a message, or of the only element of a list; empty without one. */
    String body(String name) {
        List<Field> found = named(name);
        if (found.isEmpty()) {
            return "";
        }
        int[] inner = inner(found.get(0));
        return text.substring(inner[0], inner[1]);
    }

    /** Replaces the text between the braces of a message, or of the only element of a list; adds the message without one. */
    void setBody(String name, String body) {
        List<Field> found = named(name);
        if (found.isEmpty()) {
            append(name + " {" + (body.contains("\n") ? indented(body) : " " + body.strip() + " ") + "}");
            return;
        }
        int[] inner = inner(found.get(0));
        text = text.substring(0, inner[0]) + body + text.substring(inner[1]);
    }

    /** Sets an entry of a map: a message with {@code key} and {@code value}. */
    void setEntry(String name, String key, String value) {
        for (Field field : named(name)) {
            for (int[] element : elements(field)) {
                ConfigText entry = new ConfigText(text.substring(element[0], element[1]));
                if (unquoted(entry.value("key")).equals(key)) {
                    entry.set("value", value);
                    text = text.substring(0, element[0]) + entry.text + text.substring(element[1]);
                    return;
                }
            }
        }
        append(name + " { key: \"" + key + "\" value " + value + " }");
    }

    private String value(String name) {
        List<Field> found = named(name);
        return found.isEmpty() ? "" : text.substring(found.get(0).valueStart, found.get(0).end);
    }

    private static String unquoted(String value) {
        String stripped = value.strip();
        return stripped.length() >= 2 ? stripped.substring(1, stripped.length() - 1) : stripped;
    }

    private void append(String field) {
        String end =
                text.isEmpty() || text.endsWith("\n") ? "" : text.contains("\n") || text.length() > 60 ? "\n" : " ";
        // A message of one line, as in braces, stays one.
        boolean line = !text.contains("\n") && !text.isEmpty() && text.length() <= 60;
        text = line ? text.stripTrailing() + " " + field + " " : text + end + field + "\n";
    }

    private static String indented(String body) {
        return "\n  " + body.strip().replace("\n", "\n  ") + "\n";
    }

    /** Removes a field with the white space and the separator behind it, and its line when nothing else is on it. */
    private void cut(Field field) {
        int end = field.end;
        while (end < text.length() && (text.charAt(end) == ',' || text.charAt(end) == ';' || text.charAt(end) == ' ')) {
            end++;
        }
        int start = field.start;
        int line = text.lastIndexOf('\n', start - 1) + 1;
        if (text.substring(line, start).isBlank() && end < text.length() && text.charAt(end) == '\n') {
            start = line;
            end++;
        }
        text = text.substring(0, start) + text.substring(end);
    }

    private List<Field> named(String name) {
        return fields().stream().filter(field -> field.name.equals(name)).toList();
    }

    /** Where the body of the only message of a field begins and ends. */
    private int[] inner(Field field) {
        List<int[]> elements = elements(field);
        return elements.isEmpty() ? new int[] {field.valueStart + 1, field.end - 1} : elements.get(0);
    }

    /** The bodies of a message, or of the messages of a list. */
    private List<int[]> elements(Field field) {
        List<int[]> result = new ArrayList<>();
        if (!field.message) {
            return result;
        }
        if (text.charAt(field.valueStart) != '[') {
            result.add(new int[] {field.valueStart + 1, field.end - 1});
            return result;
        }
        int at = blank(field.valueStart + 1);
        while (at < field.end - 1) {
            if (text.charAt(at) == '{' || text.charAt(at) == '<') {
                int end = closing(at);
                result.add(new int[] {at + 1, end - 1});
                at = end;
            } else {
                at++;
            }
            at = blank(at);
        }
        return result;
    }

    private List<Field> fields() {
        List<Field> fields = new ArrayList<>();
        int at = blank(0);
        while (at < text.length()) {
            int start = at;
            while (at < text.length() && isName(text.charAt(at))) {
                at++;
            }
            if (at == start) {
                at = blank(at + 1); // a separator
                continue;
            }
            String name = text.substring(start, at);
            at = blank(at);
            if (at < text.length() && text.charAt(at) == ':') {
                at = blank(at + 1);
            }
            int value = at;
            boolean message = value < text.length() && "{<[".indexOf(text.charAt(value)) >= 0;
            at = message ? closing(value) : scalar(value);
            fields.add(new Field(name, start, value, at, message));
            at = blank(at);
        }
        return fields;
    }

    private static boolean isName(char c) {
        return c == '_' || c == '.' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z';
    }

    /** The next position that is neither white space nor in a comment. */
    private int blank(int from) {
        int at = from;
        while (at < text.length()) {
            if (text.charAt(at) == '#') {
                int line = text.indexOf('\n', at);
                at = line < 0 ? text.length() : line;
            } else if (Character.isWhitespace(text.charAt(at))) {
                at++;
            } else {
                break;
            }
        }
        return at;
    }

    /** Behind the bracket that closes the one at a position. */
    private int closing(int from) {
        int depth = 0;
        int at = from;
        while (at < text.length()) {
            char c = text.charAt(at);
            if (c == '"' || c == '\'') {
                at = behindString(at);
                continue;
            }
            if (c == '#') {
                at = blank(at);
                continue;
            }
            if ("{[<".indexOf(c) >= 0) {
                depth++;
            } else if ("}]>".indexOf(c) >= 0 && --depth == 0) {
                return at + 1;
            }
            at++;
        }
        return text.length();
    }

    /** Behind a number, a name, or strings, which may follow one another. */
    private int scalar(int from) {
        int at = from;
        if (at < text.length() && (text.charAt(at) == '"' || text.charAt(at) == '\'')) {
            int end = at;
            while (at < text.length() && (text.charAt(at) == '"' || text.charAt(at) == '\'')) {
                end = behindString(at);
                at = blank(end);
            }
            return end;
        }
        while (at < text.length() && (isName(text.charAt(at)) || text.charAt(at) == '-' || text.charAt(at) == '+')) {
            at++;
        }
        return Math.max(at, Math.min(from + 1, text.length()));
    }

    private int behindString(int from) {
        char quote = text.charAt(from);
        int at = from + 1;
        while (at < text.length() && text.charAt(at) != quote) {
            at += text.charAt(at) == '\\' ? 2 : 1;
        }
        return Math.min(at + 1, text.length());
    }
}
