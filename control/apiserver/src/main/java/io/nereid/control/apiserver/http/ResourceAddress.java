// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.http;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.store.ResourceStore;

/**
 * The address of the resource or collection that a request is about.
 *
 * @param namespace empty for all namespaces, and for cluster-scoped kinds
 * @param name empty for the collection
 * @param subresource empty for the resource itself
 */
public record ResourceAddress(ResourceKind kind, String namespace, String name, String subresource) {
    /** The type of the resource in the store. */
    public ResourceStore.Type type() {
        return new ResourceStore.Type(kind.group(), kind.plural());
    }

    /** The key of the resource in the store. */
    public ResourceStore.Key key() {
        return new ResourceStore.Key(type(), namespace, name);
    }

    /** The address of a resource in this collection. */
    public ResourceAddress named(String name) {
        return new ResourceAddress(kind, namespace, name, subresource);
    }

    /** Whether it is the status of a resource. */
    public boolean isStatus() {
        return subresource.equals("status");
    }

    /** The plural with the group, such as {@code inferenceservices.serving.kserve.io}. */
    public String qualifiedPlural() {
        return kind.group().isEmpty() ? kind.plural() : kind.plural() + "." + kind.group();
    }

    /**
     * Reads the resource from a store, with kind and version.
     *
     * @throws ServingException NOT_FOUND
     */
    public ObjectNode read(ResourceStore store) {
        ObjectNode found = store.get(key());
        if (found == null) {
            throw notFound();
        }
        return complete(kind, found);
    }

    /**
     * The resource with kind and version, which may be missing in resources that the control plane has created, and which
     * are those of the request where a kind is served under several versions.
     */
    public static ObjectNode complete(ResourceKind kind, ObjectNode resource) {
        boolean other = resource.path("apiVersion").asText("").startsWith(kind.group() + "/")
                && !resource.path("apiVersion").asText().equals(kind.apiVersion());
        if (!resource.has("kind") || !resource.has("apiVersion") || other) {
            ObjectNode full = ApiResponse.JSON.createObjectNode();
            full.put("apiVersion", kind.apiVersion()).put("kind", kind.kind());
            full.setAll(resource);
            return full.put("apiVersion", kind.apiVersion());
        }
        return resource;
    }

    /** The error for a resource that does not exist. */
    public ServingException notFound() {
        return ServingException.of(ErrorCode.NOT_FOUND, qualifiedPlural() + " \"" + name + "\" not found");
    }
}
