// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.fasterxml.jackson.databind.node.TextNode;
import io.nereid.base.ServingException;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * Renders the subset of Go templates that runtimes and host names use: expressions in double braces that refer to a
 * field or to an entry of a map. Values are inserted into strings of an already parsed tree, so a value cannot add
 * fields or expressions. Immutable.
 *
 * @param fields the values by name, such as {@code Name}
 * @param maps the maps by name: {@code Labels}, {@code Annotations}
 */
public record TemplateRenderer(Map<String, String> fields, Map<String, Map<String, String>> maps) {
    private static final Pattern EXPRESSION = Pattern.compile("\\{\\{(-?)(.*?)(-?)}}", Pattern.DOTALL);
    private static final Pattern FIELD = Pattern.compile("\\.([A-Za-z_][A-Za-z0-9_]*)");
    private static final Pattern ENTRY = Pattern.compile("\\.([A-Za-z_][A-Za-z0-9_]*)\\.([A-Za-z_][A-Za-z0-9_]*)");
    private static final Pattern INDEX =
            Pattern.compile("index\\s+\\.([A-Za-z_][A-Za-z0-9_]*)\\s+(?:\"([^\"\\\\]*)\"|`([^`]*)`)");

    /** A copy of the tree with all strings rendered; names of fields are not. */
    JsonNode fill(JsonNode tree, String where) {
        if (tree instanceof ObjectNode object) {
            ObjectNode filled = object.objectNode();
            object.properties()
                    .forEach(entry -> filled.set(entry.getKey(), fill(entry.getValue(), where + "." + entry.getKey())));
            return filled;
        }
        if (tree instanceof ArrayNode array) {
            ArrayNode filled = array.arrayNode();
            for (int i = 0; i < array.size(); i++) {
                filled.add(fill(array.get(i), where + "[" + i + "]"));
            }
            return filled;
        }
        return tree.isTextual() ? TextNode.valueOf(fill(tree.textValue(), where)) : tree;
    }

    /**
     * Renders a text.
     *
     * @param where the path of the text, for messages
     * @throws ServingException INVALID_ARGUMENT for an unknown field, and for a key that the map does not contain
     */
    public String fill(String text, String where) {
        if (!text.contains("{{")) {
            return text;
        }
        StringBuilder filled = new StringBuilder();
        Matcher matcher = EXPRESSION.matcher(text);
        int last = 0;
        boolean trim = false; // whether the last expression ended with -}}, which trims the white space after it
        while (matcher.find()) {
            String between = text.substring(last, matcher.start());
            between = trim ? between.stripLeading() : between;
            filled.append(matcher.group(1).isEmpty() ? between : between.stripTrailing());
            filled.append(value(matcher.group(2).strip(), where));
            trim = !matcher.group(3).isEmpty();
            last = matcher.end();
        }
        String rest = text.substring(last);
        if (rest.contains("{{")) {
            throw ServingException.invalidArgument(where + ": \"{{\" without \"}}\" in \"" + text + "\"");
        }
        return filled.append(trim ? rest.stripLeading() : rest).toString();
    }

    private String value(String expression, String where) {
        Matcher field = FIELD.matcher(expression);
        if (field.matches()) {
            String value = fields.get(field.group(1));
            if (value != null) {
                return value;
            }
            throw unknown(expression, where);
        }
        Matcher entry = ENTRY.matcher(expression);
        if (entry.matches()) {
            return entry(entry.group(1), entry.group(2), expression, where);
        }
        Matcher index = INDEX.matcher(expression);
        if (index.matches()) {
            String key = index.group(2) == null ? index.group(3) : index.group(2);
            return entry(index.group(1), key, expression, where);
        }
        throw unknown(expression, where);
    }

    private String entry(String map, String key, String expression, String where) {
        Map<String, String> entries = maps.get(map);
        if (entries == null) {
            throw unknown(expression, where);
        }
        @Nullable String value = entries.get(key);
        if (value == null) {
            throw ServingException.invalidArgument(where + ": {{" + expression + "}}: the service has no "
                    + (map.equals("Labels") ? "label" : "annotation") + " \"" + key
                    + "\"; add it to the service's metadata");
        }
        return value;
    }

    private ServingException unknown(String expression, String where) {
        StringBuilder known = new StringBuilder();
        fields.keySet().stream().sorted().forEach(name -> known.append(", .").append(name));
        maps.keySet().stream()
                .sorted()
                .forEach(name -> known.append(", .")
                        .append(name)
                        .append(".key, index .")
                        .append(name)
                        .append(" \"key\""));
        return ServingException.invalidArgument(
                where + ": {{" + expression + "}} is not a template field; known are " + known.substring(2));
    }
}
