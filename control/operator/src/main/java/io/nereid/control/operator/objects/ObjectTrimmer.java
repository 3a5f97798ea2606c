// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.objects;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.kubernetes.apply.OwnedFields;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.install.BuiltInResources;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Keeps of objects what the operator needs, for its caches hold every object of every service. Stateless; the methods
 * change the trees that they are given.
 */
public final class ObjectTrimmer {
    /** The annotation of trimmed resources with the fields that the operator has not made. */
    public static final String OTHERS = "nereid.io/fields-of-others";

    private static final String CONTAINERS = "containerStatuses";
    private static final String INITIALIZERS = "initContainerStatuses";

    /** Kinds whose statuses change without an effect on the services. */
    private static final Set<String> STATUS_UNUSED = Set.of(
            "HorizontalPodAutoscaler",
            "ScaledObject",
            "Service",
            "Ingress",
            "VirtualService",
            "OpenTelemetryCollector");

    private ObjectTrimmer() {}

    /** An object that an InferenceService or InferenceGraph owns, with the fields that this operator applied; else null. */
    static @Nullable ObjectNode owned(ObjectNode object) {
        if (owner(object) == null) {
            return null;
        }
        ObjectNode metadata = object.withObject("/metadata");
        metadata.retain(List.of(
                "name",
                "namespace",
                "uid",
                "resourceVersion",
                "generation",
                "creationTimestamp",
                "deletionTimestamp",
                "labels",
                "annotations",
                "ownerReferences",
                "managedFields"));
        ArrayNode fields = JsonNodeFactory.instance.arrayNode();
        metadata.path("managedFields").forEach(entry -> {
            if (isOurs(entry)) {
                fields.add(entry);
            } else if (FieldTransfer.isMaker(entry)) {
                fields.add(FieldTransfer.trace(entry));
            }
        });
        metadata.set("managedFields", fields);
        if (STATUS_UNUSED.contains(Trees.kind(object))) {
            object.remove("status");
        }
        object.path("status").path("conditions").forEach(condition -> {
            if (condition instanceof ObjectNode tree) {
                tree.remove("lastUpdateTime");
            }
        });
        return object;
    }

    private static boolean isOurs(JsonNode entry) {
        return entry.path("manager").asText().equals(ClusterClient.FIELD_MANAGER)
                && entry.path("operation").asText().equals("Apply");
    }

    /** A pod without its specification, with what its status says of readiness and containers. */
    static ObjectNode pod(ObjectNode pod) {
        pod.withObject("/metadata")
                .retain(List.of(
                        "name",
                        "namespace",
                        "uid",
                        "resourceVersion",
                        "creationTimestamp",
                        "deletionTimestamp",
                        "labels",
                        "ownerReferences"));
        pod.remove("spec");
        ObjectNode status = pod.withObject("/status");
        status.retain(List.of("phase", "reason", "message", "conditions", CONTAINERS, INITIALIZERS));
        ArrayNode ready = JsonNodeFactory.instance.arrayNode();
        for (JsonNode condition : status.path("conditions")) {
            if (condition.path("type").asText().equals("Ready")) {
                ready.addObject().put("type", "Ready").set("status", condition.path("status"));
            }
        }
        status.set("conditions", ready);
        for (String list : List.of(CONTAINERS, INITIALIZERS)) {
            status.path(list).forEach(container -> {
                if (container instanceof ObjectNode tree) {
                    tree.retain(List.of("name", "state", "lastState", "restartCount"));
                }
            });
        }
        return pod;
    }

    /**
     * A resource that may be one that comes with the operator: also has the annotation {@link #OTHERS} then, which says what
     * others have changed of it.
     */
    public static ObjectNode shipped(ObjectNode resource) {
        if (OwnedFields.has(resource, BuiltInResources.FIELD_MANAGER)) {
            String others = OwnedFields.specWithout(resource, BuiltInResources.FIELD_MANAGER)
                    .toString();
            resource.withObject("/metadata/annotations").put(OTHERS, others);
        }
        return resource(resource);
    }

    /** A resource without the list of its managers, which is as large as itself. */
    public static ObjectNode resource(ObjectNode resource) {
        resource.withObject("/metadata").remove("managedFields");
        return resource;
    }

    /** The InferenceService or InferenceGraph that controls an object; null for other objects. */
    static @Nullable JsonNode owner(ObjectNode object) {
        for (JsonNode reference : object.path("metadata").path("ownerReferences")) {
            if (reference.path("controller").asBoolean()
                    && reference.path("apiVersion").asText().startsWith(ResourceKinds.SERVING + "/")) {
                return reference;
            }
        }
        return null;
    }
}
