// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.patch;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.apiserver.http.ApiResponse;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Server-side apply: tracks which manager owns which fields of a resource ({@code metadata.managedFields}). Objects are
 * owned field by field, lists as a whole. Sets of fields are in the format FieldsV1: trees whose names begin with
 * {@code f:} and whose leaves are empty objects. Stateless.
 */
public final class FieldManager {
    private static final Set<String> UNMANAGED_METADATA = Set.of(
            "name",
            "namespace",
            "generateName",
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "generation",
            "managedFields",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink");

    private FieldManager() {}

    /**
     * The manager that makes a change, as in an entry of {@code managedFields}.
     *
     * @param manager its name
     * @param operation {@code Apply} or {@code Update}
     * @param subresource {@code status} or empty
     * @param apiVersion the version of the resource
     * @param time the time of the change
     */
    public record Author(String manager, String operation, String subresource, String apiVersion, String time) {
        boolean is(JsonNode entry) {
            return entry.path("manager").asText("").equals(manager)
                    && entry.path("operation").asText("").equals(operation)
                    && entry.path("subresource").asText("").equals(subresource);
        }
    }

    /** A field that another manager owns. */
    public record Conflict(String manager, String apiVersion, String field) {}

    /** The result of an apply: the merged resource with its managed fields, or the conflicts. */
    public record Applied(ObjectNode resource, List<Conflict> conflicts) {}

    /**
     * The managed fields after an update: the author owns the fields that it has changed, other managers lose them, and
     * all managers lose the fields that were removed.
     */
    public static ArrayNode afterUpdate(
            @Nullable ObjectNode before, ObjectNode after, ArrayNode entries, Author author) {
        ObjectNode none = ApiResponse.JSON.createObjectNode();
        ObjectNode changed = differences(managed(before == null ? none : before), managed(after));
        ObjectNode removed = differences(managed(after), managed(before == null ? none : before));
        removed = absent(removed, managed(after));
        if (changed.isEmpty() && removed.isEmpty()) {
            return entries.deepCopy();
        }
        ArrayNode result = ApiResponse.JSON.createArrayNode();
        ObjectNode own = changed;
        for (JsonNode entry : entries) {
            ObjectNode fields = subtract(fieldsOf(entry), removed);
            if (author.is(entry)) {
                own = union(fields, changed);
            } else {
                fields = subtract(fields, changed);
                if (!fields.isEmpty()) {
                    ((ObjectNode) result.add(entry.deepCopy()).get(result.size() - 1)).set("fieldsV1", fields);
                }
            }
        }
        if (!own.isEmpty()) {
            result.add(entry(author, own));
        }
        return result;
    }

    /**
     * Merges an applied configuration into the stored resource.
     *
     * <p>A conflict is a field that another manager owns and whose value the configuration changes; with {@code force}
     * the author takes it over. Fields that the author applied before and does not apply now are removed, unless
     * another manager owns them too.
     *
     * @param earlierConfig the configuration of the author's earlier client-side apply, which did not set managed
     *     fields as an apply; its fields do not conflict while they still have the values of that configuration
     */
    public static Applied apply(
            ObjectNode live,
            ObjectNode config,
            ArrayNode entries,
            Author author,
            boolean force,
            ObjectNode earlierConfig) {
        ObjectNode allowed =
                subtract(fields(managed(earlierConfig)), differences(managed(live), managed(earlierConfig)));
        ObjectNode applied = fields(managed(config));
        ObjectNode earlier = ApiResponse.JSON.createObjectNode();
        ObjectNode others = ApiResponse.JSON.createObjectNode();
        List<Conflict> conflicts = new ArrayList<>();
        ArrayNode result = ApiResponse.JSON.createArrayNode();
        ObjectNode different = intersection(differences(managed(live), managed(config)), applied);
        for (JsonNode entry : entries) {
            if (author.is(entry)) {
                earlier = fieldsOf(entry);
                continue;
            }
            ObjectNode fields = fieldsOf(entry);
            ObjectNode contested = intersection(fields, different);
            List<String> paths = new ArrayList<>();
            paths(subtract(contested, allowed), "", paths);
            for (String path : paths) {
                conflicts.add(new Conflict(
                        entry.path("manager").asText(), entry.path("apiVersion").asText(author.apiVersion()), path));
            }
            fields = subtract(fields, contested);
            others = union(others, fields);
            if (!fields.isEmpty()) {
                ((ObjectNode) result.add(entry.deepCopy()).get(result.size() - 1)).set("fieldsV1", fields);
            }
        }
        if (!conflicts.isEmpty() && !force) {
            return new Applied(live, conflicts);
        }
        ObjectNode merged = (ObjectNode) overlay(live, config);
        remove(merged, subtract(subtract(earlier, applied), others));
        ObjectNode unchanged = entry(author, applied);
        for (JsonNode entry : entries) {
            if (author.is(entry) && fieldsOf(entry).equals(applied) && different.isEmpty()) {
                unchanged = entry.deepCopy();
            }
        }
        result.add(unchanged);
        merged.withObject("/metadata").set("managedFields", result);
        return new Applied(merged, List.of());
    }

    private static ObjectNode entry(Author author, ObjectNode fields) {
        ObjectNode entry = ApiResponse.JSON.createObjectNode();
        entry.put("manager", author.manager())
                .put("operation", author.operation())
                .put("apiVersion", author.apiVersion())
                .put("time", author.time())
                .put("fieldsType", "FieldsV1");
        entry.set("fieldsV1", fields);
        if (!author.subresource().isEmpty()) {
            entry.put("subresource", author.subresource());
        }
        return entry;
    }

    private static ObjectNode fieldsOf(JsonNode entry) {
        return entry.path("fieldsV1") instanceof ObjectNode fields
                ? fields.deepCopy()
                : ApiResponse.JSON.createObjectNode();
    }

    /** A copy of a resource without the fields that do not have managers. */
    private static ObjectNode managed(ObjectNode resource) {
        ObjectNode copy = resource.deepCopy();
        copy.remove(List.of("apiVersion", "kind"));
        if (copy.get("metadata") instanceof ObjectNode metadata) {
            metadata.remove(UNMANAGED_METADATA);
            if (metadata.isEmpty()) {
                copy.remove("metadata");
            }
        }
        return copy;
    }

    private static ObjectNode fields(JsonNode tree) {
        ObjectNode fields = ApiResponse.JSON.createObjectNode();
        for (Map.Entry<String, JsonNode> field : tree.properties()) {
            JsonNode value = field.getValue();
            fields.set("f:" + field.getKey(), value.isObject() ? fields(value) : ApiResponse.JSON.createObjectNode());
        }
        return fields;
    }

    /** Fields of {@code after} that {@code before} does not have, or has with another value. */
    private static ObjectNode differences(JsonNode before, JsonNode after) {
        ObjectNode fields = ApiResponse.JSON.createObjectNode();
        for (Map.Entry<String, JsonNode> field : after.properties()) {
            JsonNode old = before.path(field.getKey());
            JsonNode value = field.getValue();
            if (old.equals(value)) {
                continue;
            }
            String name = "f:" + field.getKey();
            if (value.isObject() && !value.isEmpty()) {
                ObjectNode inner = differences(old, value);
                if (!inner.isEmpty()) {
                    fields.set(name, inner);
                }
            } else {
                fields.set(name, ApiResponse.JSON.createObjectNode());
            }
        }
        return fields;
    }

    /** The subset of {@code fields} that a tree does not contain. */
    private static ObjectNode absent(ObjectNode fields, JsonNode tree) {
        ObjectNode result = ApiResponse.JSON.createObjectNode();
        for (Map.Entry<String, JsonNode> field : fields.properties()) {
            JsonNode value = tree.path(field.getKey().substring(2));
            if (value.isMissingNode()) {
                result.set(field.getKey(), field.getValue());
            } else if (!field.getValue().isEmpty() && value.isObject()) {
                ObjectNode inner = absent((ObjectNode) field.getValue(), value);
                if (!inner.isEmpty()) {
                    result.set(field.getKey(), inner);
                }
            }
        }
        return result;
    }

    /** All fields of both sets. */
    private static ObjectNode union(ObjectNode one, ObjectNode other) {
        ObjectNode result = one.deepCopy();
        for (Map.Entry<String, JsonNode> field : other.properties()) {
            JsonNode present = result.get(field.getKey());
            result.set(
                    field.getKey(),
                    present instanceof ObjectNode object && field.getValue() instanceof ObjectNode added
                            ? union(object, added)
                            : field.getValue().deepCopy());
        }
        return result;
    }

    /**
     * The fields of {@code from} that are not in {@code what}. A leaf stays when only a part of it is subtracted. An
     * object that has only its own mark {@code .} left is dropped.
     */
    private static ObjectNode subtract(ObjectNode from, ObjectNode what) {
        ObjectNode result = ApiResponse.JSON.createObjectNode();
        for (Map.Entry<String, JsonNode> field : from.properties()) {
            JsonNode removed = what.get(field.getKey());
            if (removed == null) {
                result.set(field.getKey(), field.getValue());
            } else if (!removed.isEmpty() && field.getValue().isEmpty()) {
                result.set(field.getKey(), field.getValue());
            } else if (!removed.isEmpty()) {
                ObjectNode inner = subtract((ObjectNode) field.getValue(), (ObjectNode) removed);
                if (!inner.isEmpty() && !(inner.size() == 1 && inner.has("."))) {
                    result.set(field.getKey(), inner);
                }
            }
        }
        return result;
    }

    /**
     * The fields that are in both sets. Where one set has an object as a whole and the other a part of it, the part.
     */
    private static ObjectNode intersection(ObjectNode one, ObjectNode other) {
        ObjectNode result = ApiResponse.JSON.createObjectNode();
        for (Map.Entry<String, JsonNode> field : one.properties()) {
            JsonNode also = other.get(field.getKey());
            if (also == null || field.getKey().equals(".")) {
                continue;
            }
            if (field.getValue().isEmpty() || also.isEmpty()) {
                result.set(field.getKey(), also.isEmpty() ? field.getValue() : also);
            } else {
                ObjectNode inner = intersection((ObjectNode) field.getValue(), (ObjectNode) also);
                if (!inner.isEmpty()) {
                    result.set(field.getKey(), inner);
                }
            }
        }
        return result;
    }

    /** Lists the leaves of a set of fields as paths such as {@code .spec.minReplicas}. */
    private static void paths(JsonNode fields, String prefix, List<String> paths) {
        for (Map.Entry<String, JsonNode> field : fields.properties()) {
            String path = prefix + "." + field.getKey().substring(2);
            if (field.getValue().isEmpty()) {
                paths.add(path);
            } else {
                paths(field.getValue(), path, paths);
            }
        }
    }

    private static JsonNode overlay(JsonNode live, JsonNode config) {
        if (!(config instanceof ObjectNode changes) || !(live instanceof ObjectNode object)) {
            return config.deepCopy();
        }
        ObjectNode result = object.deepCopy();
        for (Map.Entry<String, JsonNode> field : changes.properties()) {
            result.set(field.getKey(), overlay(result.path(field.getKey()), field.getValue()));
        }
        return result;
    }

    private static void remove(ObjectNode tree, ObjectNode fields) {
        for (Map.Entry<String, JsonNode> field : fields.properties()) {
            String name = field.getKey().startsWith("f:") ? field.getKey().substring(2) : "";
            JsonNode value = tree.get(name);
            if (value == null) {
                continue;
            }
            if (field.getValue().isEmpty()) {
                tree.remove(name);
            } else if (value instanceof ObjectNode inner) {
                remove(inner, (ObjectNode) field.getValue());
                if (inner.isEmpty()) {
                    tree.remove(name);
                }
            }
        }
    }
}
