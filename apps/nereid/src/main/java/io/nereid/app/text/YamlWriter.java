// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.text;

import com.fasterxml.jackson.databind.JsonNode;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Writes JSON trees as YAML that parses back to the same tree, with YAML 1.2 and 1.1 parsers: strings such as
 * {@code yes}, a boolean in YAML 1.1, are quoted. Immutable.
 */
public final class YamlWriter {
    private static final Pattern PLAIN = Pattern.compile(
            "[A-Za-z_/][A-Za-z0-9_./@+=%{}()-]*( [A-Za-z0-9_./@+=%()-]+)*|[A-Za-z]+://[^\\s#'\"]+[^\\s#:'\"]");
    private static final Set<String> WORDS = Set.of("y", "n", "yes", "no", "on", "off", "true", "false", "null");

    private YamlWriter() {}

    public static String of(JsonNode tree) {
        StringBuilder out = new StringBuilder();
        if (tree.isValueNode() || tree.isEmpty()) {
            out.append(scalar(tree, "")).append('\n');
        } else {
            write(tree, "", out);
        }
        return out.toString();
    }

    private static void write(JsonNode tree, String indent, StringBuilder out) {
        if (tree.isObject()) {
            boolean first = true;
            for (Map.Entry<String, JsonNode> field : tree.properties()) {
                // The first field of a list element is on the line of its dash.
                if (!first || out.isEmpty() || out.charAt(out.length() - 1) == '\n') {
                    out.append(indent);
                }
                first = false;
                out.append(text(field.getKey(), "")).append(':');
                JsonNode value = field.getValue();
                if (value.isValueNode() || value.isEmpty()) {
                    out.append(' ').append(scalar(value, indent + "  ")).append('\n');
                } else {
                    out.append('\n');
                    write(value, value.isArray() ? indent : indent + "  ", out);
                }
            }
            return;
        }
        for (JsonNode element : tree) {
            out.append(indent).append("- ");
            if (element.isValueNode() || element.isEmpty()) {
                out.append(scalar(element, indent + "  ")).append('\n');
            } else if (element.isArray()) {
                out.setLength(out.length() - 1);
                out.append('\n');
                write(element, indent + "  ", out);
            } else {
                write(element, indent + "  ", out);
            }
        }
    }

    private static String scalar(JsonNode value, String indent) {
        return value.isTextual() ? text(value.asText(), indent) : value.toString();
    }

    private static String text(String text, String indent) {
        if (PLAIN.matcher(text).matches() && !WORDS.contains(text.toLowerCase(Locale.ROOT))) {
            return text;
        }
        boolean block = !indent.isEmpty()
                && text.indexOf('\n') >= 0
                && text.strip().equals(text.stripTrailing())
                && !text.endsWith("\n\n")
                && text.chars().allMatch(c -> c == '\n' || c >= 0x20 && c < 0x7f)
                && text.lines().noneMatch(String::isBlank);
        if (block) {
            StringBuilder lines = new StringBuilder(text.endsWith("\n") ? "|" : "|-");
            text.lines().forEach(line -> lines.append('\n').append(indent).append(line));
            return lines.toString();
        }
        return com.fasterxml.jackson.databind.node.TextNode.valueOf(text).toString();
    }
}
