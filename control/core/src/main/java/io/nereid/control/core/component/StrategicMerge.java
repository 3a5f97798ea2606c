// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.core.component;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Merges a service's container into its runtime's, like a strategic merge patch of Kubernetes. Stateless. */
public final class StrategicMerge {
    /** The merge keys of a pod's and a container's lists; lists without a merge key are replaced as a whole. */
    private static final Map<String, String> KEYS = Map.ofEntries(
            Map.entry("env", "name"),
            Map.entry("ports", "containerPort"),
            Map.entry("volumeMounts", "mountPath"),
            Map.entry("volumeDevices", "devicePath"),
            Map.entry("volumes", "name"),
            Map.entry("imagePullSecrets", "name"),
            Map.entry("initContainers", "name"),
            Map.entry("resourceClaims", "name"),
            Map.entry("hostAliases", "ip"),
            Map.entry("topologySpreadConstraints", "topologyKey"));

    private StrategicMerge() {}

    /**
     * A new container with the runtime's fields, overridden by the service's. The arguments are concatenated, the
     * runtime's first, as KServe does.
     */
    static ObjectNode containers(ObjectNode runtime, ObjectNode own) {
        ObjectNode merged = objects(runtime, own);
        ArrayNode args = merged.arrayNode();
        runtime.path("args").forEach(args::add);
        own.path("args").forEach(args::add);
        if (!args.isEmpty()) {
            merged.set("args", args);
        }
        return merged;
    }

    /** A new tree with the fields of a pod or container, overridden by those of a patch. */
    public static ObjectNode patch(ObjectNode base, ObjectNode patch) {
        return objects(base, patch);
    }

    private static ObjectNode objects(ObjectNode under, ObjectNode over) {
        ObjectNode merged = under.deepCopy();
        for (Map.Entry<String, JsonNode> entry : over.properties()) {
            JsonNode value = entry.getValue();
            JsonNode there = merged.get(entry.getKey());
            if (value.isNull()) {
                continue;
            }
            String key = KEYS.get(entry.getKey());
            if (value instanceof ObjectNode object && there instanceof ObjectNode other) {
                merged.set(entry.getKey(), objects(other, object));
            } else if (value instanceof ArrayNode array && there instanceof ArrayNode other && key != null) {
                merged.set(entry.getKey(), lists(other, array, key));
            } else {
                merged.set(entry.getKey(), value.deepCopy());
            }
        }
        return merged;
    }

    private static ArrayNode lists(ArrayNode under, ArrayNode over, String key) {
        ArrayNode merged = under.deepCopy();
        for (JsonNode element : over) {
            int index = indexOf(merged, key, element.get(key));
            if (index < 0) {
                merged.add(element.deepCopy());
            } else if (element instanceof ObjectNode object && merged.get(index) instanceof ObjectNode there) {
                // A variable has a literal value or a source, not both: the one that overrides removes the other.
                ObjectNode one = objects(there, object);
                if (object.has("value")) {
                    one.remove("valueFrom");
                } else if (object.has("valueFrom")) {
                    one.remove("value");
                }
                merged.set(index, one);
            }
        }
        return merged;
    }

    private static int indexOf(ArrayNode list, String key, @Nullable JsonNode value) {
        for (int i = 0; i < list.size(); i++) {
            if (value != null && value.equals(list.get(i).get(key))) {
                return i;
            }
        }
        return -1;
    }
}
