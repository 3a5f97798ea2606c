// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.patch;

import com.fasterxml.jackson.core.JsonPointer;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ValidationErrors;
import io.nereid.control.apiserver.http.ApiResponse;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Map;

/** Applies the patch formats of Kubernetes: JSON patch, JSON merge patch and strategic merge patch. Stateless. */
public final class ResourcePatcher {
    /** The merge keys of lists in Kubernetes' core kinds. */
    private static final Map<String, String> MERGE_KEYS =
            Map.of("secrets", "name", "imagePullSecrets", "name", "ownerReferences", "uid", "conditions", "type");

    /** The most operations of a JSON patch, as in Kubernetes. */
    private static final int MOST_OPERATIONS = 10_000;

    /**
     * The most bytes of JSON that the copies of a JSON patch may add, as in Kubernetes: a copy of a parent into itself
     * doubles it, so a few dozen operations would otherwise exhaust the memory.
     */
    private static final int MOST_COPIED_BYTES = 3 << 20;

    private ResourcePatcher() {}

    /** Applies a JSON merge patch (RFC 7386): nulls remove fields, objects are merged, other values replace. */
    public static JsonNode merge(JsonNode target, JsonNode patch) {
        if (!(patch instanceof ObjectNode changes)) {
            return patch.deepCopy();
        }
        ObjectNode result =
                target instanceof ObjectNode object ? object.deepCopy() : ApiResponse.JSON.createObjectNode();
        for (Map.Entry<String, JsonNode> change : changes.properties()) {
            if (change.getValue().isNull()) {
                result.remove(change.getKey());
            } else {
                result.set(change.getKey(), merge(result.path(change.getKey()), change.getValue()));
            }
        }
        return result;
    }

    /**
     * Applies a strategic merge patch: as {@link #merge}, but lists with a merge key are merged by element, and names
     * with a dollar sign are directives.
     */
    public static JsonNode strategic(JsonNode target, JsonNode patch) {
        if (!(patch instanceof ObjectNode changes)) {
            return patch.deepCopy();
        }
        String directive = changes.path("$patch").asText("");
        if (directive.equals("replace")) {
            ObjectNode replacement = changes.deepCopy();
            replacement.remove("$patch");
            return replacement;
        }
        ObjectNode result =
                target instanceof ObjectNode object ? object.deepCopy() : ApiResponse.JSON.createObjectNode();
        if (directive.equals("delete")) {
            return ApiResponse.JSON.createObjectNode();
        }
        for (Map.Entry<String, JsonNode> change : changes.properties()) {
            String name = change.getKey();
            JsonNode value = change.getValue();
            if (name.startsWith("$deleteFromPrimitiveList/")) {
                String list = name.substring(name.indexOf('/') + 1);
                List<JsonNode> removed = new ArrayList<>();
                value.forEach(removed::add);
                if (result.get(list) instanceof ArrayNode array) {
                    removeIf(array, removed);
                }
            } else if (name.equals("$retainKeys")) {
                List<String> kept = new ArrayList<>();
                value.forEach(k -> kept.add(k.asText()));
                result.retain(kept);
            } else if (value.isNull()) {
                result.remove(name);
            } else if (value instanceof ArrayNode elements
                    && result.get(name) instanceof ArrayNode present
                    && MERGE_KEYS.containsKey(name)) {
                mergeElements(present, elements, MERGE_KEYS.get(name));
            } else if (value instanceof ArrayNode elements
                    && name.equals("finalizers")
                    && result.get(name) instanceof ArrayNode present) {
                removeIf(present, elementsOf(elements));
                present.addAll(elements.deepCopy());
            } else if (!name.startsWith("$")) {
                // The remaining directives order elements, which has no meaning in the lists of these kinds.
                result.set(name, strategic(result.path(name), value));
            }
        }
        return result;
    }

    private static List<JsonNode> elementsOf(ArrayNode array) {
        List<JsonNode> all = new ArrayList<>();
        array.forEach(all::add);
        return all;
    }

    private static void removeIf(ArrayNode array, List<JsonNode> removed) {
        for (Iterator<JsonNode> i = array.iterator(); i.hasNext(); ) {
            if (removed.contains(i.next())) {
                i.remove();
            }
        }
    }

    private static void mergeElements(ArrayNode present, ArrayNode elements, String key) {
        for (JsonNode element : elements) {
            int found = -1;
            for (int i = 0; i < present.size(); i++) {
                if (present.get(i).path(key).equals(element.path(key))) {
                    found = i;
                }
            }
            if (element.path("$patch").asText("").equals("delete")) {
                if (found >= 0) {
                    present.remove(found);
                }
            } else if (found >= 0) {
                present.set(found, strategic(present.get(found), element));
            } else {
                present.add(strategic(ApiResponse.JSON.createObjectNode(), element));
            }
        }
    }

    /**
     * Applies a JSON patch (RFC 6902).
     *
     * @throws ServingException INVALID_ARGUMENT for a malformed patch, for an operation that cannot be applied, and for
     *     more operations and copies than are accepted; the message contains the path
     */
    public static JsonNode json(JsonNode target, JsonNode patch) {
        if (!(patch instanceof ArrayNode operations)) {
            throw ServingException.invalidArgument("a JSON patch is a list of operations");
        }
        if (operations.size() > MOST_OPERATIONS) {
            throw ServingException.invalidArgument("the JSON patch has " + operations.size()
                    + " operations (expected: at most " + MOST_OPERATIONS + ")");
        }
        JsonNode result = target.deepCopy();
        long copied = 0;
        for (JsonNode operation : operations) {
            String op = operation.path("op").asText("");
            String path = operation.path("path").asText("");
            switch (op) {
                case "add" -> result = add(result, path, value(operation));
                case "remove" -> result = remove(result, path);
                case "replace" -> {
                    require(result, path, op);
                    result = path.isEmpty() ? value(operation) : add(remove(result, path), path, value(operation));
                }
                case "move" -> {
                    JsonNode moved = require(result, operation.path("from").asText(""), op);
                    result = add(remove(result, operation.path("from").asText("")), path, moved);
                }
                case "copy" -> {
                    JsonNode original = require(result, operation.path("from").asText(""), op);
                    copied += original.toString().length();
                    if (copied > MOST_COPIED_BYTES) {
                        throw ServingException.invalidArgument("the copies of the JSON patch have more than "
                                + MOST_COPIED_BYTES + " bytes, with that to '" + path + "'");
                    }
                    result = add(result, path, original.deepCopy());
                }
                case "test" -> {
                    JsonNode found = at(result, path);
                    if (!found.equals(operation.path("value"))) {
                        throw ServingException.invalidArgument("the JSON patch's test of '" + path + "' failed: it is "
                                + (found.isMissingNode() ? "absent" : ValidationErrors.clip(found.toString())));
                    }
                }
                default ->
                    throw ServingException.invalidArgument("'" + op
                            + "' is not an operation of a JSON patch (expected add, remove, replace, move,"
                            + " copy or test)");
            }
        }
        return result;
    }

    private static JsonNode value(JsonNode operation) {
        JsonNode value = operation.get("value");
        if (value == null) {
            throw ServingException.invalidArgument(
                    "the operation on '" + operation.path("path").asText() + "' has no value");
        }
        return value.deepCopy();
    }

    private static JsonNode at(JsonNode tree, String path) {
        return tree.at(pointer(path));
    }

    private static JsonPointer pointer(String path) {
        try {
            return JsonPointer.compile(path);
        } catch (IllegalArgumentException e) {
            throw ServingException.invalidArgument("'" + path + "' is not a JSON pointer (expected /a/b/0)");
        }
    }

    private static JsonNode require(JsonNode tree, String path, String op) {
        JsonNode found = at(tree, path);
        if (found.isMissingNode()) {
            throw ServingException.invalidArgument(
                    "the JSON patch's " + op + " of '" + path + "' cannot be applied: the path does not exist");
        }
        return found;
    }

    private static JsonNode add(JsonNode tree, String path, JsonNode value) {
        if (path.isEmpty()) {
            return value;
        }
        JsonPointer pointer = pointer(path);
        JsonPointer last = pointer.last();
        JsonNode parent = tree.at(pointer.head());
        String name = last.getMatchingProperty();
        if (parent instanceof ObjectNode object) {
            object.set(name, value);
        } else if (parent instanceof ArrayNode array && name.equals("-")) {
            array.add(value);
        } else if (parent instanceof ArrayNode array
                && last.getMatchingIndex() >= 0
                && last.getMatchingIndex() <= array.size()) {
            array.insert(last.getMatchingIndex(), value);
        } else {
            throw ServingException.invalidArgument("the JSON patch's add of '" + path
                    + "' cannot be applied: the parent is not an object or a list with such an index");
        }
        return tree;
    }

    private static JsonNode remove(JsonNode tree, String path) {
        require(tree, path, "remove");
        JsonPointer pointer = pointer(path);
        if (path.isEmpty()) {
            throw ServingException.invalidArgument("a JSON patch cannot remove the whole resource");
        }
        JsonNode parent = tree.at(pointer.head());
        if (parent instanceof ObjectNode object) {
            object.remove(pointer.last().getMatchingProperty());
        } else if (parent instanceof ArrayNode array) {
            array.remove(pointer.last().getMatchingIndex());
        }
        return tree;
    }
}
