// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.schema.StructuralSchema;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.BiFunction;
import org.jspecify.annotations.Nullable;

/**
 * Reads the fields of one JSON object by type, and knows its path for error messages. A null is treated as absent, as
 * in Kubernetes. Unknown fields are ignored, because {@link StructuralSchema} reports them at admission. Immutable as long as the
 * JSON tree is not modified.
 */
public record FieldReader(ObjectNode tree, String path) {
    private static final ObjectNode NOTHING = new ObjectNode(JsonNodeFactory.instance);

    public static FieldReader of(ObjectNode tree) {
        return new FieldReader(tree, "");
    }

    public static boolean isAbsent(@Nullable JsonNode node) {
        return node == null || node.isNull() || node.isMissingNode();
    }

    public boolean has(String name) {
        return !isAbsent(tree.get(name));
    }

    public String at(String name) {
        return path.isEmpty() ? name : path + "." + name;
    }

    public @Nullable String text(String name) {
        JsonNode node = tree.get(name);
        if (isAbsent(node)) {
            return null;
        }
        if (!node.isTextual()) {
            throw wrong(at(name), "a string", node);
        }
        return node.textValue();
    }

    public String text(String name, String orElse) {
        String text = text(name);
        return text == null ? orElse : text;
    }

    public boolean flag(String name, boolean orElse) {
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

    /** A string or a number as a string, for fields that Kubernetes allows as either, such as quantities and ports. */
    public @Nullable String scalar(String name) {
        JsonNode node = tree.get(name);
        if (isAbsent(node)) {
            return null;
        }
        if (!node.isTextual() && !node.isNumber()) {
            throw wrong(at(name), "a string or a number", node);
        }
        return node.asText();
    }

    /** The object of this name; an empty one when it is absent, so that calls can be chained. */
    public FieldReader object(String name) {
        FieldReader found = objectOrNull(name);
        return found == null ? new FieldReader(NOTHING, at(name)) : found;
    }

    @Nullable FieldReader objectOrNull(String name) {
        JsonNode node = tree.get(name);
        return isAbsent(node) ? null : object(node, at(name));
    }

    <T> @Nullable T read(String name, BiFunction<ObjectNode, String, T> reader) {
        FieldReader found = objectOrNull(name);
        return found == null ? null : reader.apply(found.tree, found.path);
    }

    /** The object of this name as a JSON tree, or null. */
    @Nullable ObjectNode tree(String name) {
        FieldReader found = objectOrNull(name);
        return found == null ? null : found.tree;
    }

    public List<String> texts(String name) {
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
            FieldReader element = object(node, at(name) + "[" + all.size() + "]");
            all.add(reader.apply(element.tree, element.path));
        }
        return List.copyOf(all);
    }

    List<ObjectNode> trees(String name) {
        return list(name, (node, where) -> node);
    }

    /** A map of strings in its order, without null values. */
    public Map<String, String> map(String name) {
        FieldReader found = objectOrNull(name);
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

    /** A map of quantities in its order; their syntax is not checked. */
    public Map<String, String> quantities(String name) {
        FieldReader found = object(name);
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

    private static FieldReader object(JsonNode node, String path) {
        if (!(node instanceof ObjectNode object)) {
            throw wrong(path, "an object", node);
        }
        return new FieldReader(object, path);
    }

    private static ServingException wrong(String path, String expected, JsonNode found) {
        return ServingException.invalidArgument(ValidationErrors.wrongType(path, expected, found));
    }

    /** Removes fields that are null, recursively; Kubernetes treats them as absent. */
    public static void prune(JsonNode node) {
        if (node instanceof ObjectNode object) {
            List<String> nulls = object.properties().stream()
                    .filter(entry -> entry.getValue().isNull())
                    .map(Map.Entry::getKey)
                    .toList();
            object.remove(nulls);
        }
        node.forEach(FieldReader::prune);
    }
}
