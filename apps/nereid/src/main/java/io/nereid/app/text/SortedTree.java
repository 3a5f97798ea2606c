// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.text;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.TreeMap;

/** Trees whose fields are in the order of their names, as kubectl prints them, whatever the server's order. Stateless. */
public final class SortedTree {
    private SortedTree() {}

    /** A copy with sorted fields; the order of lists stays. */
    public static JsonNode of(JsonNode tree) {
        if (tree.isObject()) {
            TreeMap<String, JsonNode> fields = new TreeMap<>();
            tree.properties().forEach(field -> fields.put(field.getKey(), of(field.getValue())));
            ObjectNode sorted = JsonNodeFactory.instance.objectNode();
            sorted.setAll(fields);
            return sorted;
        }
        if (tree.isArray()) {
            ArrayNode list = JsonNodeFactory.instance.arrayNode();
            tree.forEach(one -> list.add(of(one)));
            return list;
        }
        return tree;
    }
}
