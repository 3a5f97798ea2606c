// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.webhook;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.ValidationErrors;
import io.nereid.control.operator.cluster.ClusterClient;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Refuses changes of caches of models that only the objects of the cluster forbid, as KServe does: the deletion of one that services use, a
 * second LocalModelCache of a source, and a LocalModelNamespaceCache of groups that do not exist. These writes are rare:
 * each is judged from what the API server has at that time. Thread-safe.
 */
final class LocalModelReviews {
    private final ClusterClient client;

    LocalModelReviews(ClusterClient client) {
        this.client = client;
    }

    /**
     * Judges the request of a review.
     *
     * @throws ServingException INVALID_ARGUMENT for what is refused
     */
    void check(JsonNode request) {
        String operation = request.path("operation").asText("");
        JsonNode resource = operation.equals("DELETE") ? request.path("oldObject") : request.path("object");
        ResourceKind kind = ResourceKinds.byKind(
                resource.path("apiVersion").asText(""), resource.path("kind").asText(""));
        boolean ofCluster = ResourceKinds.LOCAL_MODEL_CACHE.equals(kind);
        if (kind == null || !ofCluster && !ResourceKinds.LOCAL_MODEL_NAMESPACE_CACHE.equals(kind)) {
            return;
        }
        if (operation.equals("DELETE")) {
            deletion(kind, resource);
        } else if (operation.equals("CREATE") && ofCluster) {
            source(resource);
        } else if (!ofCluster && !resource.path("metadata").hasNonNull("deletionTimestamp")) {
            groups(resource, request.get("oldObject") instanceof ObjectNode old ? old : null);
        }
    }

    /** A service that is gone, or that has ceased to use the cache since the status was written, does not count. */
    private void deletion(ResourceKind kind, JsonNode cache) {
        List<String> users = new ArrayList<>();
        String source = cache.path("spec").path("sourceModelUri").asText("");
        for (JsonNode user : cache.path("status").path("inferenceServices")) {
            String namespace = user.path("namespace").asText("");
            String name = user.path("name").asText("");
            ObjectNode service = client.get(ResourceKinds.INFERENCE_SERVICE, namespace, name);
            if (service != null && !service.path("metadata").hasNonNull("deletionTimestamp") && uses(service, source)) {
                users.add(namespace + "/" + name);
            }
        }
        if (!users.isEmpty()) {
            throw ServingException.invalidArgument(
                    kind.kind() + " " + cache.path("metadata").path("name").asText()
                            + " is used by the InferenceServices " + ValidationErrors.clip(String.join(", ", users)),
                    "delete them, or set their annotation serving.kserve.io/disable-localmodel: \"true\"");
        }
    }

    private static boolean uses(ObjectNode service, String source) {
        String optOut = service.path("metadata")
                .path("annotations")
                .path("serving.kserve.io/disable-localmodel")
                .asText("");
        if (optOut.equals("true")) {
            return false;
        }
        for (JsonNode part : service.path("spec").path("predictor")) {
            String uri = part.path("storageUri").asText("");
            if (uri.equals(source) || uri.startsWith(source + "/")) {
                return true;
            }
        }
        return false;
    }

    private void source(JsonNode cache) {
        String source = cache.path("spec").path("sourceModelUri").asText("");
        String name = cache.path("metadata").path("name").asText("");
        for (ObjectNode other : client.list(ResourceKinds.LOCAL_MODEL_CACHE, null)) {
            String by = other.path("metadata").path("name").asText();
            if (!by.equals(name)
                    && other.path("spec").path("sourceModelUri").asText("").equals(source)) {
                throw ServingException.invalidArgument(
                        "the LocalModelCache " + by + " has the sourceModelUri " + ValidationErrors.clip(source)
                                + " already",
                        "use that one, or delete it first");
            }
        }
    }

    private void groups(JsonNode cache, @Nullable ObjectNode old) {
        JsonNode named = cache.path("spec").path("nodeGroups");
        if (old != null && old.path("spec").path("nodeGroups").equals(named)) {
            return;
        }
        for (JsonNode group : named) {
            if (client.get(ResourceKinds.LOCAL_MODEL_NODE_GROUP, null, group.asText()) == null) {
                throw ServingException.invalidArgument(
                        "there is no LocalModelNodeGroup " + ValidationErrors.clip(group.asText())
                                + ", which spec.nodeGroups names",
                        "create it first");
            }
        }
    }
}
