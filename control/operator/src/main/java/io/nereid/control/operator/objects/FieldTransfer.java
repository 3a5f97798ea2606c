// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.objects;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.operator.cluster.ClusterClient;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Hands the fields of an object that another controller has made over to the operator. Without it a field that the operator no
 * longer applies would stay, as the other controller owns it as well: an environment variable that is taken out of a
 * service would remain in its pods. The other controller is the one that has set the owner of the object by an update; the
 * number of replicas stays out, since autoscalers set it. Stateless.
 */
final class FieldTransfer {
    private static final int TRIES = 5;

    private FieldTransfer() {}

    /** Whether an entry of {@code managedFields} is that of a controller that made the object without server-side apply. */
    static boolean isMaker(JsonNode entry) {
        return entry.path("operation").asText().equals("Update")
                && entry.path("subresource").asText("").isEmpty()
                && entry.path("fieldsV1").path("f:metadata").has("f:ownerReferences");
    }

    /** What caches keep of the entry of a maker: enough to find it. */
    static ObjectNode trace(JsonNode entry) {
        ObjectNode trace = JsonNodeFactory.instance.objectNode();
        trace.set("manager", entry.path("manager"));
        trace.put("operation", "Update");
        trace.putObject("fieldsV1").putObject("f:metadata").putObject("f:ownerReferences");
        return trace;
    }

    /** Whether an object has fields to hand over. */
    static boolean isNeeded(ObjectNode stored) {
        for (JsonNode entry : stored.path("metadata").path("managedFields")) {
            if (isMaker(entry)) {
                return true;
            }
        }
        return false;
    }

    /**
     * Makes the operator the manager of the fields of the maker. Changes no field itself.
     *
     * @throws ServingException as {@link ClusterClient#merge}
     */
    static void run(ClusterClient client, ResourceKind kind, String namespace, String name) {
        for (int tries = 1; ; tries++) {
            ObjectNode stored = client.get(kind, namespace, name);
            if (stored == null || !isNeeded(stored)) {
                return;
            }
            ObjectNode patch = JsonNodeFactory.instance.objectNode();
            ObjectNode metadata = patch.putObject("metadata");
            metadata.set("resourceVersion", stored.path("metadata").path("resourceVersion"));
            metadata.set("managedFields", transferred(stored.path("metadata").path("managedFields")));
            try {
                ObjectNode unused = client.merge(kind, namespace, name, patch);
                return;
            } catch (ServingException e) {
                if (e.code() != ErrorCode.ABORTED || tries == TRIES) {
                    throw e;
                }
            }
        }
    }

    private static ArrayNode transferred(JsonNode entries) {
        ArrayNode result = JsonNodeFactory.instance.arrayNode();
        ObjectNode own = null;
        for (JsonNode entry : entries) {
            if (isOwn(entry)) {
                own = entry.deepCopy();
            }
        }
        for (JsonNode entry : entries) {
            if (isMaker(entry)) {
                own = merged(own, entry);
            } else if (!isOwn(entry)) {
                result.add(entry.deepCopy());
            }
        }
        if (own != null) {
            result.insert(0, own);
        }
        return result;
    }

    private static boolean isOwn(JsonNode entry) {
        return entry.path("manager").asText().equals(ClusterClient.FIELD_MANAGER)
                && entry.path("operation").asText().equals("Apply")
                && entry.path("subresource").asText("").isEmpty();
    }

    private static ObjectNode merged(@Nullable ObjectNode own, JsonNode maker) {
        ObjectNode fields = maker.path("fieldsV1").deepCopy();
        if (fields.path("f:spec") instanceof ObjectNode spec) {
            spec.remove("f:replicas");
        }
        if (own == null) {
            ObjectNode made = maker.deepCopy();
            made.put("manager", ClusterClient.FIELD_MANAGER).put("operation", "Apply");
            made.set("fieldsV1", fields);
            return made;
        }
        // Names of fields may differ between versions of a kind: those of another one are left without a manager.
        if (own.path("apiVersion").equals(maker.path("apiVersion"))) {
            unite(own.withObjectProperty("fieldsV1"), fields);
        }
        return own;
    }

    private static void unite(ObjectNode into, JsonNode fields) {
        for (Map.Entry<String, JsonNode> field : fields.properties()) {
            if (into.path(field.getKey()) instanceof ObjectNode child) {
                unite(child, field.getValue());
            } else {
                into.set(field.getKey(), field.getValue().deepCopy());
            }
        }
    }
}
