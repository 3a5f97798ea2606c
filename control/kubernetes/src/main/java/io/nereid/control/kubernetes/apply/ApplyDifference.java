// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.apply;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.Quantity;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Determines whether a server-side apply of an object would change what is stored, without asking the API server. An object
 * is up to date if every field of the desired object is stored with that value, and when the manager owns no other
 * fields, according to {@code metadata.managedFields}. So defaults that the API server has set and fields of other
 * managers, such as the replicas that an autoscaler sets, do not count. Stateless.
 *
 * <p>Lists are compared as Kubernetes merges them: those with keys, such as containers, element by element, and the
 * others as a whole. See the Kubernetes documentation, Server-Side Apply, and {@code FieldsV1} of its API.
 */
public final class ApplyDifference {
    private static final ObjectMapper JSON = new ObjectMapper();

    /** The keys of the lists whose elements are merged; the first of which an element has identifies it. */
    private static final Map<String, List<String>> KEYS = Map.ofEntries(
            Map.entry("containers", List.of("name")),
            Map.entry("initContainers", List.of("name")),
            Map.entry("ephemeralContainers", List.of("name")),
            Map.entry("env", List.of("name")),
            Map.entry("volumes", List.of("name")),
            Map.entry("volumeMounts", List.of("mountPath")),
            Map.entry("volumeDevices", List.of("devicePath")),
            Map.entry("imagePullSecrets", List.of("name")),
            Map.entry("ownerReferences", List.of("uid")),
            Map.entry("ports", List.of("containerPort", "port")),
            Map.entry("hostAliases", List.of("ip")),
            Map.entry("topologySpreadConstraints", List.of("topologyKey")),
            Map.entry("resourceClaims", List.of("name")));

    /** Parents of quantities: maps from a resource to a quantity, and fields that are one. */
    private static final Set<String> QUANTITIES =
            Set.of("requests", "limits", "sizeLimit", "averageValue", "divisor", "storage");

    private ApplyDifference() {}

    /**
     * Returns the first difference as a path, such as {@code spec.replicas}; null when the stored object is up to date.
     *
     * @param desired the object to apply
     * @param stored the stored object with its {@code managedFields}
     * @param manager the field manager that applies
     */
    public static @Nullable String find(ObjectNode desired, ObjectNode stored, String manager) {
        JsonNode owned = owned(stored, manager);
        if (owned == null) {
            return "metadata.managedFields";
        }
        String missing = missing("", "", desired, stored);
        return missing != null ? missing : surplus("", "", owned, desired);
    }

    /**
     * Returns the first field of the desired object that is stored with another value, or not at all; null for none.
     * Fields that are stored and not desired do not count.
     */
    public static @Nullable String changed(ObjectNode desired, ObjectNode stored) {
        return missing("", "", desired, stored);
    }

    private static @Nullable JsonNode owned(ObjectNode stored, String manager) {
        for (JsonNode entry : stored.path("metadata").path("managedFields")) {
            if (entry.path("manager").asText().equals(manager)
                    && entry.path("operation").asText().equals("Apply")
                    && entry.path("subresource").asText("").isEmpty()) {
                return entry.path("fieldsV1");
            }
        }
        return null;
    }

    // ---- fields of the desired object that are stored otherwise ----

    private static @Nullable String missing(String path, String field, JsonNode desired, JsonNode stored) {
        if (isEmpty(desired) && isEmpty(stored)) {
            return null;
        }
        if (desired instanceof ObjectNode object) {
            for (Map.Entry<String, JsonNode> entry : object.properties()) {
                String name = QUANTITIES.contains(field) ? field : entry.getKey();
                String found = missing(join(path, entry.getKey()), name, entry.getValue(), stored.path(entry.getKey()));
                if (found != null) {
                    return found;
                }
            }
            return null;
        }
        if (desired instanceof ArrayNode array) {
            return stored instanceof ArrayNode list ? missingOfList(path, field, array, list) : path;
        }
        return sameValue(desired, stored, isQuantity(path, field)) ? null : path;
    }

    private static @Nullable String missingOfList(String path, String field, ArrayNode desired, ArrayNode stored) {
        String key = key(field, desired);
        if (key == null) {
            if (desired.size() != stored.size()) {
                return path;
            }
            for (int i = 0; i < desired.size(); i++) {
                String found = missing(path + "[" + i + "]", "", desired.get(i), stored.get(i));
                if (found != null) {
                    return found;
                }
            }
            return null;
        }
        for (JsonNode element : desired) {
            JsonNode other = null;
            for (JsonNode candidate : stored) {
                if (matches(element, candidate, key)) {
                    other = candidate;
                    break;
                }
            }
            String at = path + "[" + element.path(key).asText() + "]";
            String found = other == null ? at : missing(at, "", element, other);
            if (found != null) {
                return found;
            }
        }
        return null;
    }

    /** Ports are identified by number and protocol, the others by one key. */
    private static boolean matches(JsonNode element, JsonNode candidate, String key) {
        return element.path(key).asText().equals(candidate.path(key).asText())
                && element.path("protocol")
                        .asText("TCP")
                        .equals(candidate.path("protocol").asText("TCP"));
    }

    private static @Nullable String key(String field, ArrayNode list) {
        for (String key : KEYS.getOrDefault(field, List.of())) {
            if (!list.isEmpty() && list.get(0).has(key)) {
                return key;
            }
        }
        return null;
    }

    /** A metric's {@code value} is a quantity, the one of an environment variable is not. */
    private static boolean isQuantity(String path, String field) {
        return QUANTITIES.contains(field) || (field.equals("value") && path.startsWith("spec.metrics["));
    }

    private static boolean sameValue(JsonNode desired, JsonNode stored, boolean quantity) {
        if (desired.equals(stored)) {
            return true;
        }
        if (!desired.isValueNode() || !stored.isValueNode() || stored.isNull()) {
            return false;
        }
        if (desired.asText().equals(stored.asText())) {
            return true;
        }
        if (!quantity) {
            return false;
        }
        // The API server stores quantities in their shortest form.
        try {
            return Quantity.parse(desired.asText())
                            .value()
                            .compareTo(Quantity.parse(stored.asText()).value())
                    == 0;
        } catch (ServingException e) {
            return false;
        }
    }

    private static boolean isEmpty(JsonNode node) {
        return node.isMissingNode() || node.isNull() || (node.isContainerNode() && node.isEmpty());
    }

    // ---- fields that the manager owns and that are not desired any more ----

    private static @Nullable String surplus(String path, String field, JsonNode owned, JsonNode desired) {
        for (Map.Entry<String, JsonNode> entry : owned.properties()) {
            String key = entry.getKey();
            if (key.startsWith("f:")) {
                String name = key.substring(2);
                JsonNode value = desired.path(name);
                if (value.isMissingNode() || value.isNull()) {
                    return join(path, name);
                }
                String found = surplus(join(path, name), name, entry.getValue(), value);
                if (found != null) {
                    return found;
                }
            } else if (key.startsWith("k:")) {
                JsonNode element = element(key.substring(2), desired);
                if (element == null) {
                    return path + "[" + key.substring(2) + "]";
                }
                String found = surplus(path + "[" + key.substring(2) + "]", field, entry.getValue(), element);
                if (found != null) {
                    return found;
                }
            } else if (key.startsWith("v:")) {
                if (!contains(key.substring(2), desired)) {
                    return path + "[" + key.substring(2) + "]";
                }
            }
        }
        return null;
    }

    private static @Nullable JsonNode element(String keys, JsonNode list) {
        JsonNode wanted = parse(keys);
        for (JsonNode element : list) {
            boolean same = true;
            for (Map.Entry<String, JsonNode> key : wanted.properties()) {
                JsonNode value = element.path(key.getKey());
                // A key that is left out has a default, such as the protocol of a port.
                same &= value.isMissingNode()
                        || value.asText().equals(key.getValue().asText());
            }
            if (same) {
                return element;
            }
        }
        return null;
    }

    private static boolean contains(String value, JsonNode list) {
        JsonNode wanted = parse(value);
        for (JsonNode element : list) {
            if (element.asText().equals(wanted.asText())) {
                return true;
            }
        }
        return false;
    }

    private static JsonNode parse(String json) {
        try {
            return JSON.readTree(json);
        } catch (JsonProcessingException e) {
            throw ServingException.internal("managedFields with a key that is not JSON: " + json, e);
        }
    }

    private static String join(String path, String field) {
        return path.isEmpty() ? field : path + "." + field;
    }
}
