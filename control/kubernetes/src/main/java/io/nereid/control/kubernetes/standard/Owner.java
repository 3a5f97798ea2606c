// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.InferenceService;
import io.nereid.control.kubernetes.cluster.Trees;
import java.util.Map;

/**
 * The service that owns what is made for it, so that it goes with the service.
 *
 * @param uid the service's identity; empty when it has none yet
 */
record Owner(String name, String namespace, String uid) {
    static Owner of(InferenceService service) {
        return new Owner(
                service.metadata().name(),
                service.metadata().namespace(),
                service.tree().path("metadata").path("uid").asText(""));
    }

    /** A new object in the service's namespace that the service owns. */
    ObjectNode object(
            String version,
            String kind,
            String objectName,
            Map<String, String> labels,
            Map<String, String> annotations) {
        ObjectNode object = Trees.object();
        object.put("apiVersion", version).put("kind", kind);
        ObjectNode meta = object.putObject("metadata");
        meta.put("name", objectName).put("namespace", namespace);
        if (!labels.isEmpty()) {
            Trees.map(meta, "labels", labels);
        }
        if (!annotations.isEmpty()) {
            Trees.map(meta, "annotations", annotations);
        }
        ObjectNode reference = meta.putArray("ownerReferences").addObject();
        reference
                .put("apiVersion", "serving.kserve.io/v1beta1")
                .put("kind", "InferenceService")
                .put("name", name);
        if (!uid.isEmpty()) {
            reference.put("uid", uid);
        }
        reference.put("controller", true).put("blockOwnerDeletion", true);
        return object;
    }
}
