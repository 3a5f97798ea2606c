// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Who manages which fields of a resource ({@code metadata.managedFields}), for server-side apply. Maps are managed field by field,
 * lists as a whole. Sets of fields are trees whose names begin with {@code f:} and whose leaves are empty. Stateless.
 */
final class Ownership {
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

    private Ownership() {}

    /**
     * Who makes a change.
     *
     * @param manager his name
     * @param operation {@code Apply} or {@code Update}
     * @param subresource {@code status} or empty
     * @param apiVersion of the resource
     * @param time now
     */
    record Author(String manager, String operation, String subresource, String apiVersion, String time) {
        boolean is(JsonNode entry) {
            return entry.path("manager").asText("").equals(manager)
                    && entry.path("operation").asText("").equals(operation)
                    && entry.path("subresource").asText("").equals(subresource);
        }
    }

    /** A field that somebody else manages. */
    record Conflict(String manager, String apiVersion, String field) {}

    /** What an apply leads to: the merged resource with its managers, or conflicts. */
    record Applied(ObjectNode resource, List<Conflict> conflicts) {}

    /** The entries for a resource that an update has changed. */
    static ArrayNode afterUpdate(@Nullable ObjectNode before, ObjectNode after, ArrayNode entries, Author author) {
        ObjectNode none = Answer.JSON.createObjectNode();
        ObjectNode changed = differences(managed(before == null ? none : before), managed(after));
        ObjectNode gone = differences(managed(after), managed(before == null ? none : before));
        gone = absent(gone, managed(after));
        if (changed.isEmpty() && gone.isEmpty()) {
            return entries.deepCopy();
        }
        ArrayNode result = Answer.JSON.createArrayNode();
        ObjectNode own = changed;
        for (JsonNode entry : entries) {
            ObjectNode fields = subtract(fieldsOf(entry), gone);
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
     * Merges what somebody applies into what is there.
     *
     * @param earlierConfig what he applied before without telling the server that it was an apply; no conflict is told of its
     *     fields where they still have their values
     */
    static Applied apply(
            ObjectNode live,
            ObjectNode config,
            ArrayNode entries,
            Author author,
            boolean force,
            ObjectNode earlierConfig) {
        ObjectNode allowed =
                subtract(fields(managed(earlierConfig)), differences(managed(live), managed(earlierConfig)));
        ObjectNode wanted = fields(managed(config));
        ObjectNode earlier = Answer.JSON.createObjectNode();
        ObjectNode others = Answer.JSON.createObjectNode();
        List<Conflict> conflicts = new ArrayList<>();
        ArrayNode result = Answer.JSON.createArrayNode();
        ObjectNode different = intersection(differences(managed(live), managed(config)), wanted);
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
        remove(merged, subtract(subtract(earlier, wanted), others));
        ObjectNode unchanged = entry(author, wanted);
        for (JsonNode entry : entries) {
            if (author.is(entry) && fieldsOf(entry).equals(wanted) && different.isEmpty()) {
                unchanged = entry.deepCopy();
            }
        }
        result.add(unchanged);
        merged.withObject("/metadata").set("managedFields", result);
        return new Applied(merged, List.of());
    }

    private static ObjectNode entry(Author author, ObjectNode fields) {
        ObjectNode entry = Answer.JSON.createObjectNode();
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
        return entry.path("fieldsV1") instanceof ObjectNode fields ? fields.deepCopy() : Answer.JSON.createObjectNode();
    }

    /** A resource without what nobody manages. */
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
        ObjectNode fields = Answer.JSON.createObjectNode();
        for (Map.Entry<String, JsonNode> field : tree.properties()) {
            JsonNode value = field.getValue();
            fields.set("f:" + field.getKey(), value.isObject() ? fields(value) : Answer.JSON.createObjectNode());
        }
        return fields;
    }

    /** Fields of {@code after} that {@code before} does not have, or has with another value. */
    private static ObjectNode differences(JsonNode before, JsonNode after) {
        ObjectNode fields = Answer.JSON.createObjectNode();
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
                fields.set(name, Answer.JSON.createObjectNode());
            }
        }
        return fields;
    }

    /** Those of {@code fields} that a tree does not have. */
    private static ObjectNode absent(ObjectNode fields, JsonNode tree) {
        ObjectNode result = Answer.JSON.createObjectNode();
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

    private static ObjectNode subtract(ObjectNode from, ObjectNode what) {
        ObjectNode result = Answer.JSON.createObjectNode();
        for (Map.Entry<String, JsonNode> field : from.properties()) {
            JsonNode gone = what.get(field.getKey());
            if (gone == null) {
                result.set(field.getKey(), field.getValue());
            } else if (!gone.isEmpty() && field.getValue().isEmpty()) {
                result.set(field.getKey(), field.getValue());
            } else if (!gone.isEmpty()) {
                ObjectNode inner = subtract((ObjectNode) field.getValue(), (ObjectNode) gone);
                if (!inner.isEmpty() && !(inner.size() == 1 && inner.has("."))) {
                    result.set(field.getKey(), inner);
                }
            }
        }
        return result;
    }

    /** Fields that are in both; where one has a whole and the other a part of it, the part. */
    private static ObjectNode intersection(ObjectNode one, ObjectNode other) {
        ObjectNode result = Answer.JSON.createObjectNode();
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
