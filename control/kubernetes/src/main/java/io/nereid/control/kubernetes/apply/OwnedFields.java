// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.apply;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import java.util.Iterator;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The part of a stored object that a field manager applied, by {@code metadata.managedFields}: what it would have to apply
 * again to change nothing. The format is {@code FieldsV1} of Kubernetes' API. Stateless; trees that are given stay as they
 * are, and trees that are returned are copies.
 *
 * <pre>{@code
 * ObjectNode ours = OwnedFields.of(deployment, "nereid");
 * }</pre>
 */
public final class OwnedFields {
    private static final ObjectMapper JSON = new ObjectMapper();

    private OwnedFields() {}

    /** What a manager applied of an object, with its kind and name; null when it has applied nothing. */
    public static @Nullable ObjectNode of(ObjectNode stored, String manager) {
        JsonNode fields = fields(stored, manager);
        if (fields == null || !(extract(stored, fields) instanceof ObjectNode owned)) {
            return null;
        }
        owned.set("apiVersion", stored.path("apiVersion"));
        owned.set("kind", stored.path("kind"));
        ObjectNode metadata = owned.withObjectProperty("metadata");
        for (String name : new String[] {"name", "namespace"}) {
            if (stored.path("metadata").has(name)) {
                metadata.set(name, stored.path("metadata").get(name));
            }
        }
        return owned;
    }

    /**
     * The specification of an object without what a manager applied of it: what others have set.
     *
     * @return the whole specification when the manager has applied nothing
     */
    public static JsonNode specWithout(ObjectNode stored, String manager) {
        JsonNode spec = stored.path("spec").deepCopy();
        JsonNode fields = fields(stored, manager);
        if (fields != null) {
            remove(spec, fields.path("f:spec"));
        }
        return spec;
    }

    /** Whether a manager has applied fields of an object. */
    public static boolean has(ObjectNode stored, String manager) {
        return fields(stored, manager) != null;
    }

    private static @Nullable JsonNode fields(ObjectNode stored, String manager) {
        for (JsonNode entry : stored.path("metadata").path("managedFields")) {
            if (entry.path("manager").asText().equals(manager)
                    && entry.path("operation").asText().equals("Apply")
                    && entry.path("subresource").asText("").isEmpty()) {
                return entry.path("fieldsV1");
            }
        }
        return null;
    }

    private static JsonNode extract(JsonNode value, JsonNode fields) {
        if (value instanceof ObjectNode object && hasParts(fields)) {
            ObjectNode owned = JsonNodeFactory.instance.objectNode();
            for (Map.Entry<String, JsonNode> field : fields.properties()) {
                String name = name(field.getKey());
                if (name != null && object.has(name)) {
                    owned.set(name, extract(object.get(name), field.getValue()));
                }
            }
            return owned;
        }
        if (value instanceof ArrayNode list && hasParts(fields)) {
            ArrayNode owned = JsonNodeFactory.instance.arrayNode();
            for (JsonNode element : list) {
                for (Map.Entry<String, JsonNode> field : fields.properties()) {
                    if (selects(field.getKey(), element)) {
                        owned.add(extract(element, field.getValue()));
                    }
                }
            }
            return owned;
        }
        return value.deepCopy();
    }

    /** Removes fields from a tree; objects and lists of which nothing is left go, too. */
    private static void remove(JsonNode value, JsonNode fields) {
        if (value instanceof ObjectNode object) {
            for (Map.Entry<String, JsonNode> field : fields.properties()) {
                String name = name(field.getKey());
                if (name == null || !object.has(name)) {
                    continue;
                }
                JsonNode child = object.get(name);
                if (hasParts(field.getValue())) {
                    remove(child, field.getValue());
                }
                if (!hasParts(field.getValue()) || child.isContainerNode() && child.isEmpty()) {
                    object.remove(name);
                }
            }
        } else if (value instanceof ArrayNode list) {
            for (Iterator<JsonNode> each = list.iterator(); each.hasNext(); ) {
                JsonNode element = each.next();
                for (Map.Entry<String, JsonNode> field : fields.properties()) {
                    if (selects(field.getKey(), element)) {
                        remove(element, field.getValue());
                        if (!hasParts(field.getValue()) || element.isContainerNode() && element.isEmpty()) {
                            each.remove();
                        }
                        break;
                    }
                }
            }
        }
    }

    /** Whether fields name parts of a value, and not the value as a whole. */
    private static boolean hasParts(JsonNode fields) {
        for (Map.Entry<String, JsonNode> field : fields.properties()) {
            if (!field.getKey().equals(".")) {
                return true;
            }
        }
        return false;
    }

    private static @Nullable String name(String field) {
        return field.startsWith("f:") ? field.substring(2) : null;
    }

    /** Whether the key of an element ({@code k:} with its keys, {@code v:} with its value) is that of a list's element. */
    private static boolean selects(String key, JsonNode element) {
        if (key.startsWith("v:")) {
            return parse(key).asText().equals(element.asText());
        }
        if (!key.startsWith("k:")) {
            return false;
        }
        for (Map.Entry<String, JsonNode> part : parse(key).properties()) {
            if (!element.path(part.getKey()).asText().equals(part.getValue().asText())) {
                return false;
            }
        }
        return true;
    }

    private static JsonNode parse(String key) {
        try {
            return JSON.readTree(key.substring(2));
        } catch (JsonProcessingException e) {
            throw ServingException.internal("managedFields with a key that is not JSON: " + key, e);
        }
    }
}
