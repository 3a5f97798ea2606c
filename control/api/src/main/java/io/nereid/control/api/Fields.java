// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/**
 * Reads one object of a tree by type. A null is as good as nothing, as in Kubernetes. Unknown fields are no matter here: {@link
 * Schema} tells of them at admission. Immutable as long as nobody changes the tree.
 */
record Fields(ObjectNode tree, String path) {
    private static final ObjectNode NOTHING = new ObjectNode(JsonNodeFactory.instance);

    static Fields of(ObjectNode tree) {
        return new Fields(tree, "");
    }

    static boolean isAbsent(@Nullable JsonNode node) {
        return node == null || node.isNull() || node.isMissingNode();
    }

    boolean has(String name) {
        return !isAbsent(tree.get(name));
    }

    String at(String name) {
        return path.isEmpty() ? name : path + "." + name;
    }

    @Nullable String text(String name) {
        JsonNode node = tree.get(name);
        if (isAbsent(node)) {
            return null;
        }
        if (!node.isTextual()) {
            throw wrong(at(name), "a string", node);
        }
        return node.textValue();
    }

    String text(String name, String orElse) {
        String text = text(name);
        return text == null ? orElse : text;
    }

    boolean flag(String name, boolean orElse) {
        JsonNode node = tree.get(name);
        if (isAbsent(node)) {
            return orElse;
        }
        if (!node.isBoolean()) {
            throw wrong(at(name), "true or false", node);
        }
        return node.booleanValue();
    }

    @Nullable Boolean flag(String name) {
        return has(name) ? (Boolean) flag(name, false) : null;
    }

    @Nullable Integer integer(String name) {
        Long value = number(name);
        if (value == null) {
            return null;
        }
        if (value != value.intValue()) {
            throw wrong(at(name), "an integer of 32 bits", tree.get(name));
        }
        return value.intValue();
    }

    int integer(String name, int orElse) {
        Integer value = integer(name);
        return value == null ? orElse : value;
    }

    @Nullable Long number(String name) {
        JsonNode node = tree.get(name);
        if (isAbsent(node)) {
            return null;
        }
        if (!node.isIntegralNumber() || !node.canConvertToLong()) {
            throw wrong(at(name), "an integer", node);
        }
        return node.longValue();
    }

    long number(String name, long orElse) {
        Long value = number(name);
        return value == null ? orElse : value;
    }

    /** A string or a number, as a string: quantities, ports. */
    @Nullable String scalar(String name) {
        JsonNode node = tree.get(name);
        if (isAbsent(node)) {
            return null;
        }
        if (!node.isTextual() && !node.isNumber()) {
            throw wrong(at(name), "a string or a number", node);
        }
        return node.asText();
    }

    /** The object, or an empty one. */
    Fields object(String name) {
        Fields found = objectOrNull(name);
        return found == null ? new Fields(NOTHING, at(name)) : found;
    }

    @Nullable Fields objectOrNull(String name) {
        JsonNode node = tree.get(name);
        return isAbsent(node) ? null : object(node, at(name));
    }

    <T> @Nullable T read(String name, BiFunction<ObjectNode, String, T> reader) {
        Fields found = objectOrNull(name);
        return found == null ? null : reader.apply(found.tree, found.path);
    }

    /** The subtree as it is, or null. */
    @Nullable ObjectNode tree(String name) {
        Fields found = objectOrNull(name);
        return found == null ? null : found.tree;
    }

    List<String> texts(String name) {
        List<String> all = new ArrayList<>();
        for (JsonNode node : array(name)) {
            if (!node.isTextual()) {
                throw wrong(at(name) + "[" + all.size() + "]", "a string", node);
            }
            all.add(node.textValue());
        }
        return List.copyOf(all);
    }

    <T> List<T> list(String name, BiFunction<ObjectNode, String, T> reader) {
        List<T> all = new ArrayList<>();
        for (JsonNode node : array(name)) {
            Fields element = object(node, at(name) + "[" + all.size() + "]");
            all.add(reader.apply(element.tree, element.path));
        }
        return List.copyOf(all);
    }

    List<ObjectNode> trees(String name) {
        return list(name, (node, where) -> node);
    }

    /** A map of strings, in its order. */
    Map<String, String> map(String name) {
        Fields found = objectOrNull(name);
        if (found == null) {
            return Map.of();
        }
        Map<String, String> all = new LinkedHashMap<>();
        found.tree.properties().forEach(entry -> {
            if (!entry.getValue().isNull()) {
                if (!entry.getValue().isTextual()) {
                    throw wrong(found.at(entry.getKey()), "a string", entry.getValue());
                }
                all.put(entry.getKey(), entry.getValue().textValue());
            }
        });
        return Collections.unmodifiableMap(all);
    }

    /** A map of quantities, in its order. */
    Map<String, String> quantities(String name) {
        Fields found = object(name);
        Map<String, String> all = new LinkedHashMap<>();
        for (Map.Entry<String, JsonNode> entry : found.tree.properties()) {
            String value = found.scalar(entry.getKey());
            if (value != null) {
                all.put(entry.getKey(), value);
            }
        }
        return Collections.unmodifiableMap(all);
    }

    private Iterable<JsonNode> array(String name) {
        JsonNode node = tree.get(name);
        if (isAbsent(node)) {
            return List.of();
        }
        if (!(node instanceof ArrayNode array)) {
            throw wrong(at(name), "a list", node);
        }
        return array;
    }

    private static Fields object(JsonNode node, String path) {
        if (!(node instanceof ObjectNode object)) {
            throw wrong(path, "an object", node);
        }
        return new Fields(object, path);
    }

    private static ServingException wrong(String path, String expected, JsonNode found) {
        return ServingException.invalidArgument(Schema.wrongType(path, expected, found));
    }
}
