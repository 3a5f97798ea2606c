// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.TextNode;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads paths. Confined to one thread. */
final class PathParser {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String[] OPERATORS = {"==", "!=", "!%", "<=", ">=", "<", ">", "%", "="};
    private static final int DEEPEST = 32;

    private final String text;
    private int at;
    private int depth;

    PathParser(String text) {
        this.text = text;
    }

    PathPart parse() {
        PathPart path = path("");
        if (at < text.length()) {
            throw wrong("an unexpected '" + text.charAt(at) + "'");
        }
        return path;
    }

    /** A path up to one of the characters of {@code stops}, or the end. */
    private PathPart path(String stops) {
        if (++depth > DEEPEST) {
            throw wrong("more than " + DEEPEST + " parts inside one another");
        }
        try {
            return part(stops);
        } finally {
            depth--;
        }
    }

    private PathPart part(String stops) {
        if (at >= text.length() || stops.indexOf(text.charAt(at)) >= 0) {
            throw wrong("a part without a name");
        }
        char c = text.charAt(at);
        return switch (c) {
            case '#' -> hash(stops);
            case '[' -> several(stops);
            case '{' -> named(stops);
            case '@' -> modifier(stops);
            case '!' -> throw wrong("a literal ('!'), which conditions do not need");
            default -> key(stops);
        };
    }

    /** What follows a part; {@code each} is where a dot leads when it means every element. */
    private PathPart next(String stops) {
        if (at >= text.length() || stops.indexOf(text.charAt(at)) >= 0) {
            return new PathPart.End();
        }
        char c = text.charAt(at);
        if (c != '.' && c != '|') {
            throw wrong("an unexpected '" + c + "' (expected '.' or '|' between parts)");
        }
        at++;
        return path(stops);
    }

    private PathPart key(String stops) {
        StringBuilder key = new StringBuilder();
        StringBuilder pattern = new StringBuilder();
        boolean wild = false;
        while (at < text.length()) {
            char c = text.charAt(at);
            if (c == '.' || c == '|' || stops.indexOf(c) >= 0) {
                break;
            }
            if (c == '\\' && at + 1 < text.length()) {
                char escaped = text.charAt(at + 1);
                key.append(escaped);
                pattern.append('\\').append(escaped);
                at += 2;
                continue;
            }
            wild |= c == '*' || c == '?';
            key.append(c);
            pattern.append(c);
            at++;
        }
        if (key.isEmpty()) {
            throw wrong("a part without a name");
        }
        String name = wild ? pattern.toString() : key.toString();
        return new PathPart.Key(name, wild, next(stops));
    }

    private PathPart hash(String stops) {
        at++;
        if (at < text.length() && (text.charAt(at) == '(' || text.charAt(at) == '[')) {
            String close = text.charAt(at) == '(' ? ")" : "]";
            at++;
            Query query = query(close);
            expect(close.charAt(0));
            if (at < text.length() && text.charAt(at) == '#') {
                at++;
                PathPart[] both = eachAndNext(stops);
                return new PathPart.All(query, both[0], both[1]);
            }
            return new PathPart.First(query, next(stops));
        }
        if (at >= text.length() || stops.indexOf(text.charAt(at)) >= 0) {
            return new PathPart.Count();
        }
        if (text.charAt(at) == '|') {
            return new PathPart.Each(new PathPart.End(), next(stops));
        }
        PathPart[] both = eachAndNext(stops);
        return new PathPart.Each(both[0], both[1]);
    }

    /** After a {@code #}: a dot leads into every element up to a pipe, a pipe into the array. */
    private PathPart[] eachAndNext(String stops) {
        PathPart each = new PathPart.End();
        if (at < text.length() && text.charAt(at) == '.') {
            at++;
            each = path(stops + "|");
        }
        return new PathPart[] {each, next(stops)};
    }

    private Query query(String close) {
        blanks();
        PathPart left = operator() != null ? new PathPart.End() : path("=!<>%~" + close + " ");
        blanks();
        if (at < text.length() && text.charAt(at) == '~') {
            throw wrong("the operator '~', which is not known here");
        }
        String operator = operator();
        if (operator == null) {
            return new Query(left, null, null);
        }
        at += operator.length();
        blanks();
        JsonNode right = literal(close);
        blanks();
        return new Query(left, operator.equals("=") ? "==" : operator, right);
    }

    private @Nullable String operator() {
        for (String operator : OPERATORS) {
            if (text.startsWith(operator, at)) {
                return operator;
            }
        }
        return null;
    }

    private JsonNode literal(String close) {
        int start = at;
        if (at < text.length() && text.charAt(at) == '"') {
            at++;
            while (at < text.length() && text.charAt(at) != '"') {
                at += text.charAt(at) == '\\' ? 2 : 1;
            }
            at = Math.min(at + 1, text.length());
        } else {
            while (at < text.length() && text.charAt(at) != close.charAt(0)) {
                at++;
            }
        }
        String written = text.substring(start, at).strip();
        try {
            JsonNode value = JSON.readTree(written);
            if (value != null && value.isValueNode()) {
                return value;
            }
        } catch (JsonProcessingException e) {
            if (!written.isEmpty() && written.charAt(0) != '"') {
                return TextNode.valueOf(written);
            }
        }
        throw wrong("'" + written
                + "' where a value should be (expected a string in quotes, a number, true, false or null)");
    }

    private PathPart several(String stops) {
        at++;
        List<PathPart> parts = new ArrayList<>();
        while (true) {
            blanks();
            parts.add(path(",]"));
            if (!more()) {
                break;
            }
        }
        expect(']');
        return new PathPart.Several(List.copyOf(parts), next(stops));
    }

    private PathPart named(String stops) {
        at++;
        Map<String, PathPart> parts = new LinkedHashMap<>();
        while (true) {
            blanks();
            String name = null;
            if (at < text.length() && text.charAt(at) == '"') {
                name = literal(":").textValue();
                expect(':');
            }
            int start = at;
            PathPart part = path(",}");
            parts.put(name == null ? lastKey(text.substring(start, at)) : name, part);
            if (!more()) {
                break;
            }
        }
        expect('}');
        return new PathPart.Named(parts, next(stops));
    }

    private static String lastKey(String path) {
        return path.substring(Math.max(path.lastIndexOf('.'), path.lastIndexOf('|')) + 1);
    }

    private boolean more() {
        if (at < text.length() && text.charAt(at) == ',') {
            at++;
            return true;
        }
        return false;
    }

    private PathPart modifier(String stops) {
        int start = ++at;
        while (at < text.length() && Character.isLetter(text.charAt(at))) {
            at++;
        }
        String name = text.substring(start, at);
        PathPart.Modifier.Kind kind = switch (name.toLowerCase(Locale.ROOT)) {
            case "this", "valid", "ugly", "pretty" -> PathPart.Modifier.Kind.THIS;
            case "reverse" -> PathPart.Modifier.Kind.REVERSE;
            case "keys" -> PathPart.Modifier.Kind.KEYS;
            case "values" -> PathPart.Modifier.Kind.VALUES;
            case "flatten" -> PathPart.Modifier.Kind.FLATTEN;
            case "tostr" -> PathPart.Modifier.Kind.TOSTR;
            default ->
                throw wrong("the modifier '@" + name
                        + "' (expected @this, @valid, @ugly, @pretty, @reverse, @keys, @values, @flatten or @tostr)");
        };
        if (at < text.length() && text.charAt(at) == ':') {
            throw wrong("an argument of '@" + name + "', which is not known here");
        }
        return new PathPart.Modifier(kind, next(stops));
    }

    private void blanks() {
        while (at < text.length() && text.charAt(at) == ' ') {
            at++;
        }
    }

    private void expect(char c) {
        blanks();
        if (at >= text.length() || text.charAt(at) != c) {
            throw wrong("no '" + c + "' where one should be");
        }
        at++;
    }

    private ServingException wrong(String what) {
        return ServingException.invalidArgument(
                "the condition '" + text + "' has " + what + " at character " + (at + 1),
                "write it as a path such as predictions.0.label or [@this].#(kind==\"cat\")");
    }
}
