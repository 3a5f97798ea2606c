// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.cluster;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService;
import java.util.Map;

/**
 * The service or graph that owns what is made for it, so that it goes with its owner. Immutable.
 *
 * @param apiVersion such as {@code serving.kserve.io/v1beta1}
 * @param kind {@code InferenceService} or {@code InferenceGraph}
 * @param uid the owner's identity; empty when it has none yet
 */
public record Owner(String apiVersion, String kind, String name, String namespace, String uid) {
    public static Owner of(InferenceService service) {
        return new Owner(
                "serving.kserve.io/v1beta1",
                "InferenceService",
                service.metadata().name(),
                service.metadata().namespace(),
                service.tree().path("metadata").path("uid").asText(""));
    }

    /** A stored service or graph as the owner. */
    public static Owner of(ObjectNode resource) {
        JsonNode metadata = resource.path("metadata");
        return new Owner(
                resource.path("apiVersion").asText(),
                resource.path("kind").asText(),
                metadata.path("name").asText(),
                metadata.path("namespace").asText(),
                metadata.path("uid").asText(""));
    }

    /** A new object in the service's namespace that the service owns. */
    public ObjectNode object(
            String objectVersion,
            String objectKind,
            String objectName,
            Map<String, String> labels,
            Map<String, String> annotations) {
        ObjectNode object = Trees.object();
        object.put("apiVersion", objectVersion).put("kind", objectKind);
        ObjectNode meta = object.putObject("metadata");
        meta.put("name", objectName).put("namespace", namespace);
        if (!labels.isEmpty()) {
            Trees.map(meta, "labels", labels);
        }
        if (!annotations.isEmpty()) {
            Trees.map(meta, "annotations", annotations);
        }
        ObjectNode reference = meta.putArray("ownerReferences").addObject();
        reference.put("apiVersion", apiVersion).put("kind", kind).put("name", name);
        if (!uid.isEmpty()) {
            reference.put("uid", uid);
        }
        reference.put("controller", true).put("blockOwnerDeletion", true);
        return object;
    }
}
