// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.standard;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.kubernetes.cluster.Trees;
import java.util.List;

/** Makes objects that are there part of a plan. Stateless. */
public final class ObservedObjects {
    private static final List<String> OF_THE_SERVER = List.of(
            "managedFields",
            "resourceVersion",
            "uid",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink");

    private ObservedObjects() {}

    /** The object as it can be applied again: without what the API server and controllers write. */
    public static ObjectNode applicable(ObjectNode there) {
        ObjectNode object = there.deepCopy();
        object.remove("status");
        Trees.object(object, "metadata").remove(OF_THE_SERVER);
        if (object.path("kind").asText().equals("Deployment")) {
            ObjectNode annotations = Trees.object(Trees.object(object, "metadata"), "annotations");
            annotations.remove("deployment.kubernetes.io/revision");
            boolean fixed = annotations
                    .path("serving.kserve.io/autoscalerClass")
                    .asText()
                    .equals("none");
            if (!fixed && object.path("spec") instanceof ObjectNode spec) {
                spec.remove("replicas"); // the autoscaler's
            }
        }
        return object;
    }

    /** The object with the metadata of the one that is there, when these fields of their specifications agree. */
    static ObjectNode metadata(ObjectNode object, ObjectNode there, String... fields) {
        for (String field : fields) {
            if (!object.path("spec").path(field).equals(there.path("spec").path(field))) {
                return object;
            }
        }
        ObjectNode kept = object.deepCopy();
        ObjectNode meta = Trees.object(kept, "metadata");
        for (String part : List.of("labels", "annotations")) {
            meta.remove(part);
            JsonNode own = there.path("metadata").path(part);
            if (own.isObject()) {
                meta.set(part, own.deepCopy());
            }
        }
        return kept;
    }
}
