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

/**
 * A recursive-descent parser of gjson paths. Each component is parsed together with what follows it, so the result is a
 * chain of {@link GjsonComponent}s. Confined to one thread.
 */
final class GjsonParser {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final String[] OPERATORS = {"==", "!=", "!%", "<=", ">=", "<", ">", "%", "="};
    private static final int DEEPEST = 32;

    private final String text;
    private int at;
    private int depth;

    GjsonParser(String text) {
        this.text = text;
    }

    GjsonComponent parse() {
        GjsonComponent path = path("");
        if (at < text.length()) {
            throw wrong("an unexpected '" + text.charAt(at) + "'");
        }
        return path;
    }

    /**
     * Parses a path up to one of the characters of {@code stops}, or to the end. Limits the depth, so that a condition
     * cannot overflow the stack.
     */
    private GjsonComponent path(String stops) {
        if (++depth > DEEPEST) {
            throw wrong("more than " + DEEPEST + " nested components");
        }
        try {
            return part(stops);
        } finally {
            depth--;
        }
    }

    private GjsonComponent part(String stops) {
        if (at >= text.length() || stops.indexOf(text.charAt(at)) >= 0) {
            throw wrong("a component without a name");
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

    /** Parses what follows a component: the end, or a separator and the rest of the path. */
    private GjsonComponent next(String stops) {
        if (at >= text.length() || stops.indexOf(text.charAt(at)) >= 0) {
            return new GjsonComponent.End();
        }
        char c = text.charAt(at);
        if (c != '.' && c != '|') {
            throw wrong("an unexpected '" + c + "' (expected '.' or '|' between components)");
        }
        at++;
        return path(stops);
    }

    /**
     * Parses a key. Collects it twice: without its escapes for an exact match, and with them for a pattern, in which an
     * escaped {@code *} must stay a literal.
     */
    private GjsonComponent key(String stops) {
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
            throw wrong("a component without a name");
        }
        String name = wild ? pattern.toString() : key.toString();
        return new GjsonComponent.Key(name, wild, next(stops));
    }

    /**
     * Parses {@code #} (the count), {@code #.rest} (every element), {@code #(query)} (the first match) and
     * {@code #(query)#} (all matches).
     */
    private GjsonComponent hash(String stops) {
        at++;
        if (at < text.length() && (text.charAt(at) == '(' || text.charAt(at) == '[')) {
            String close = text.charAt(at) == '(' ? ")" : "]";
            at++;
            GjsonQuery query = query(close);
            expect(close.charAt(0));
            if (at < text.length() && text.charAt(at) == '#') {
                at++;
                GjsonComponent[] both = eachAndNext(stops);
                return new GjsonComponent.All(query, both[0], both[1]);
            }
            return new GjsonComponent.First(query, next(stops));
        }
        if (at >= text.length() || stops.indexOf(text.charAt(at)) >= 0) {
            return new GjsonComponent.Count();
        }
        if (text.charAt(at) == '|') {
            return new GjsonComponent.Each(new GjsonComponent.End(), next(stops));
        }
        GjsonComponent[] both = eachAndNext(stops);
        return new GjsonComponent.Each(both[0], both[1]);
    }

    /**
     * Parses what follows a {@code #}. A dot applies the path up to the next pipe to every element; a pipe applies the
     * rest to the resulting array.
     */
    private GjsonComponent[] eachAndNext(String stops) {
        GjsonComponent each = new GjsonComponent.End();
        if (at < text.length() && text.charAt(at) == '.') {
            at++;
            each = path(stops + "|");
        }
        return new GjsonComponent[] {each, next(stops)};
    }

    private GjsonQuery query(String close) {
        blanks();
        GjsonComponent left = operator() != null ? new GjsonComponent.End() : path("=!<>%~" + close + " ");
        blanks();
        if (at < text.length() && text.charAt(at) == '~') {
            throw wrong("the operator '~', which is not supported");
        }
        String operator = operator();
        if (operator == null) {
            return new GjsonQuery(left, null, null);
        }
        at += operator.length();
        blanks();
        JsonNode right = literal(close);
        blanks();
        return new GjsonQuery(left, operator.equals("=") ? "==" : operator, right);
    }

    private @Nullable String operator() {
        for (String operator : OPERATORS) {
            if (text.startsWith(operator, at)) {
                return operator;
            }
        }
        return null;
    }

    /** Parses the right side of a query: a JSON value, or a string without quotes. */
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

    private GjsonComponent several(String stops) {
        at++;
        List<GjsonComponent> parts = new ArrayList<>();
        while (true) {
            blanks();
            parts.add(path(",]"));
            if (!more()) {
                break;
            }
        }
        expect(']');
        return new GjsonComponent.ArrayMultipath(List.copyOf(parts), next(stops));
    }

    private GjsonComponent named(String stops) {
        at++;
        Map<String, GjsonComponent> parts = new LinkedHashMap<>();
        while (true) {
            blanks();
            String name = null;
            if (at < text.length() && text.charAt(at) == '"') {
                name = literal(":").textValue();
                expect(':');
            }
            int start = at;
            GjsonComponent part = path(",}");
            parts.put(name == null ? lastKey(text.substring(start, at)) : name, part);
            if (!more()) {
                break;
            }
        }
        expect('}');
        return new GjsonComponent.ObjectMultipath(parts, next(stops));
    }

    /** The key of an unnamed member of an object multipath: the last key of its path. */
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

    private GjsonComponent modifier(String stops) {
        int start = ++at;
        while (at < text.length() && Character.isLetter(text.charAt(at))) {
            at++;
        }
        String name = text.substring(start, at);
        GjsonComponent.Modifier.Kind kind = switch (name.toLowerCase(Locale.ROOT)) {
            case "this", "valid", "ugly", "pretty" -> GjsonComponent.Modifier.Kind.THIS;
            case "reverse" -> GjsonComponent.Modifier.Kind.REVERSE;
            case "keys" -> GjsonComponent.Modifier.Kind.KEYS;
            case "values" -> GjsonComponent.Modifier.Kind.VALUES;
            case "flatten" -> GjsonComponent.Modifier.Kind.FLATTEN;
            case "tostr" -> GjsonComponent.Modifier.Kind.TOSTR;
            default ->
                throw wrong("the modifier '@" + name
                        + "' (expected @this, @valid, @ugly, @pretty, @reverse, @keys, @values, @flatten or @tostr)");
        };
        if (at < text.length() && text.charAt(at) == ':') {
            throw wrong("an argument of '@" + name + "', which is not supported");
        }
        return new GjsonComponent.Modifier(kind, next(stops));
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
