// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.kubernetes.crd;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKind.Column;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.schema.ResourceSchemas;
import java.util.List;

/**
 * The CustomResourceDefinitions of {@code apiextensions.k8s.io/v1}, made from the schemas that the control API of one
 * machine validates with. Names, versions, scopes, short names and printer columns are those of KServe, and so is what
 * the schemas accept: an object that KServe has stored stays valid. They have no descriptions of fields and no defaults.
 * Without descriptions each is small enough for client-side {@code kubectl apply}, whose annotation holds the object a
 * second time and which has 262,144 bytes at most. Without defaults the API server writes nothing into a spec that its
 * author did not, so that a GitOps tool finds no drift. Stateless.
 *
 * <pre>{@code
 * for (ObjectNode definition : CustomResourceDefinitions.all()) {
 *     System.out.println("---\n" + yaml.writeValueAsString(definition));
 * }
 * }</pre>
 */
public final class CustomResourceDefinitions {
    /** The category under which {@code kubectl get} lists all kinds. */
    static final String CATEGORY = "nereid";

    private CustomResourceDefinitions() {}

    /** The definitions of all kinds that a cluster has of KServe's group, always in the same order; new trees. */
    public static List<ObjectNode> all() {
        return ResourceKinds.all().stream()
                .filter(kind -> kind.group().equals(ResourceKinds.SERVING))
                .map(CustomResourceDefinitions::of)
                .toList();
    }

    /** The definition of one kind; a new tree. */
    public static ObjectNode of(ResourceKind kind) {
        ObjectNode definition = JsonNodeFactory.instance.objectNode();
        definition.put("apiVersion", "apiextensions.k8s.io/v1").put("kind", "CustomResourceDefinition");
        ObjectNode metadata = definition.putObject("metadata");
        metadata.put("name", kind.plural() + "." + kind.group());
        metadata.putObject("labels").put("app.kubernetes.io/part-of", "nereid");
        ObjectNode spec = definition.putObject("spec");
        spec.put("group", kind.group());
        // Written out, so that server-side apply over KServe's definition takes its conversion webhook away.
        spec.putObject("conversion").put("strategy", "None");
        ObjectNode names = spec.putObject("names");
        names.put("kind", kind.kind()).put("listKind", kind.listKind());
        names.put("plural", kind.plural()).put("singular", kind.singular());
        texts(names, "shortNames", kind.shortNames());
        texts(names, "categories", List.of(CATEGORY));
        spec.put("scope", kind.namespaced() ? "Namespaced" : "Cluster");
        ArrayNode versions = spec.putArray("versions");
        version(versions.addObject(), kind, true);
        // With one schema for all of them a conversion changes the version alone, and the API server does that itself.
        kind.alternates().forEach(other -> version(versions.addObject(), kind.inVersion(other), false));
        return definition;
    }

    private static void version(ObjectNode version, ResourceKind kind, boolean stored) {
        version.put("name", kind.version()).put("served", true).put("storage", stored);
        if (kind.hasStatus()) {
            version.putObject("subresources").putObject("status");
        }
        ArrayNode columns = version.putArray("additionalPrinterColumns");
        for (Column column : kind.columns()) {
            ObjectNode one = columns.addObject().put("name", column.name()).put("type", column.type());
            if (column.priority() > 0) {
                one.put("priority", column.priority());
            }
            one.put("description", column.description()).put("jsonPath", column.path());
        }
        version.putObject("schema").set("openAPIV3Schema", schema(kind));
    }

    private static ObjectNode schema(ResourceKind kind) {
        ObjectNode whole = ResourceSchemas.of(kind).openApi();
        // The API server validates these three itself and takes no schema of the metadata.
        ObjectNode properties = (ObjectNode) whole.get("properties");
        properties.putObject("metadata").put("type", "object");
        ArrayNode required = JsonNodeFactory.instance.arrayNode();
        for (JsonNode name : whole.path("required")) {
            if (!List.of("apiVersion", "kind", "metadata").contains(name.textValue())) {
                required.add(name);
            }
        }
        whole.set("required", required);
        return whole;
    }

    private static void texts(ObjectNode into, String name, List<String> values) {
        if (!values.isEmpty()) {
            values.forEach(into.putArray(name)::add);
        }
    }
}
