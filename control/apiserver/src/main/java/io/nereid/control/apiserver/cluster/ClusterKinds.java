// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.cluster;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKind.Column;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.apiserver.http.ApiResponse;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Kinds that are only read: the definitions of KServe's kinds, and Services, of which there are none on one machine.
 * Immutable.
 */
public final class ClusterKinds {
    private static final Column AGE =
            new Column("Created At", "string", "the time of creation", 0, ".metadata.creationTimestamp");

    /** The definitions of kinds that are not Kubernetes' own. */
    public static final ResourceKind DEFINITION = new ResourceKind(
            "apiextensions.k8s.io",
            "v1",
            "CustomResourceDefinition",
            "customresourcedefinitions",
            "customresourcedefinition",
            List.of("crd", "crds"),
            false,
            List.of(AGE));

    /** Services of a cluster's network. */
    public static final ResourceKind SERVICE =
            new ResourceKind("", "v1", "Service", "services", "service", List.of("svc"), true, List.of(AGE));

    /** All these kinds. */
    public static final List<ResourceKind> ALL = List.of(DEFINITION, SERVICE);

    private final List<ObjectNode> definitions;

    /**
     * @param definitions the definitions of KServe's kinds as manifests; copied
     * @param created the time of their creation, as RFC 3339 has it
     */
    public ClusterKinds(List<ObjectNode> definitions, String created) {
        this.definitions = definitions.stream()
                .map(definition -> stored(definition, created))
                .toList();
    }

    /** The definition as an API server has it that serves the kind. */
    private static ObjectNode stored(ObjectNode definition, String created) {
        ObjectNode stored = definition.deepCopy();
        String name = stored.path("metadata").path("name").asText();
        stored.withObjectProperty("metadata")
                .put(
                        "uid",
                        java.util
                                .UUID
                                .nameUUIDFromBytes(name.getBytes(java.nio.charset.StandardCharsets.UTF_8))
                                .toString())
                .put("resourceVersion", "1")
                .put("generation", 1)
                .put("creationTimestamp", created);
        ObjectNode status = ApiResponse.JSON.createObjectNode();
        for (String type : List.of("NamesAccepted", "Established")) {
            status.withArrayProperty("conditions")
                    .addObject()
                    .put("type", type)
                    .put("status", "True")
                    .put("lastTransitionTime", created)
                    .put("reason", type.equals("Established") ? "InitialNamesAccepted" : "NoConflicts")
                    .put("message", type.equals("Established") ? "the kind is served" : "no conflicts found");
        }
        status.set("acceptedNames", stored.path("spec").path("names").deepCopy());
        stored.path("spec")
                .path("versions")
                .forEach(version -> status.withArrayProperty("storedVersions")
                        .add(version.path("name").asText()));
        stored.set("status", status);
        return stored;
    }

    /** The kind of a plural; null for all others. */
    public static @Nullable ResourceKind byPlural(String group, String plural) {
        for (ResourceKind kind : ALL) {
            if (kind.group().equals(group) && kind.plural().equals(plural)) {
                return kind;
            }
        }
        return null;
    }

    /** Whether a kind is one of these. */
    public static boolean has(ResourceKind kind) {
        return kind == DEFINITION || kind == SERVICE;
    }

    /** All objects of one of these kinds; the caller must not modify them. */
    public List<ObjectNode> items(ResourceKind kind) {
        return kind == DEFINITION ? definitions : List.of();
    }

    /** Whether a group has one of KServe's kinds or Kubernetes' own ones here, with a plural. */
    static boolean exists(String group, String plural) {
        return ResourceKinds.byPlural(group, plural) != null || byPlural(group, plural) != null;
    }
}
