// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.write;

import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.apiserver.http.ApiResponse;
import io.nereid.control.apiserver.http.ResourceAddress;
import java.util.List;

/**
 * The lifecycle of namespaces. {@code default} always exists, and other namespaces are created with their first
 * resource, so that manifests can be applied without preparation. Deleting a namespace deletes its contents.
 * Thread-safe: it has no state of its own.
 */
public final class NamespaceLifecycle {
    private static final ResourceStore.Type TYPE = new ResourceStore.Type("", "namespaces");
    private static final String CONTENTS = "nereid.io/contents";
    private static final String DEFAULT = "default";

    private final ResourceStore store;

    public NamespaceLifecycle(ResourceStore store) {
        this.store = store;
        ensure(DEFAULT);
    }

    private boolean ensure(String name) {
        if (store.get(new ResourceStore.Key(TYPE, "", name)) != null) {
            return false;
        }
        ObjectNode namespace = ApiResponse.JSON.createObjectNode();
        namespace.put("apiVersion", "v1").put("kind", "Namespace");
        namespace.putObject("metadata").put("name", name);
        complete(namespace);
        try {
            store.create(TYPE, namespace);
            return true;
        } catch (ServingException e) {
            if (e.code() != ErrorCode.ALREADY_EXISTS) {
                throw e;
            }
            return false;
        }
    }

    /** Adds the label and the status that every namespace has. */
    static void complete(ObjectNode namespace) {
        namespace
                .withObject("/metadata")
                .withObject("/labels")
                .put(
                        "kubernetes.io/metadata.name",
                        namespace.path("metadata").path("name").asText());
        namespace.withObject("/status").put("phase", "Active");
    }

    /** Creates a namespace if it does not exist, and checks that resources can be created in it. */
    void require(String name, boolean dryRun, List<String> warnings) {
        ObjectNode found = store.get(new ResourceStore.Key(TYPE, "", name));
        if (found == null) {
            if (dryRun || ensure(name)) {
                warnings.add("namespace \"" + name + "\" did not exist and " + (dryRun ? "would be" : "has been")
                        + " created");
            }
        } else if (found.path("metadata").has("deletionTimestamp")) {
            throw ServingException.of(
                    ErrorCode.PERMISSION_DENIED,
                    "unable to create new content in namespace " + name + " because it is being terminated");
        }
    }

    /**
     * Deletes a namespace and its contents. A finalizer of the namespace keeps it until its last resource is gone,
     * because resources with finalizers of their own are only marked for deletion.
     */
    ObjectNode delete(ResourceAddress target, boolean dryRun) {
        String name = target.name();
        ObjectNode found = store.get(target.key());
        if (found == null) {
            throw target.notFound();
        }
        if (name.equals(DEFAULT)) {
            throw ServingException.of(
                    ErrorCode.PERMISSION_DENIED,
                    "namespaces \"default\" is forbidden: this namespace may not be deleted",
                    "delete its contents instead: nereid delete isvc --all");
        }
        if (dryRun) {
            return found;
        }
        if (!found.path("metadata").has("deletionTimestamp")) {
            ObjectNode marked = found.deepCopy();
            ArrayNode finalizers = marked.withObject("/metadata").withArray("finalizers");
            finalizers.add(CONTENTS);
            marked.withObject("/status").put("phase", "Terminating");
            store.update(TYPE, marked, null);
            store.delete(target.key(), null);
        }
        for (ResourceKind kind : ResourceKinds.all()) {
            if (kind.namespaced()) {
                ResourceStore.Type type = new ResourceStore.Type(kind.group(), kind.plural());
                for (ObjectNode item : store.list(type, name).items()) {
                    remove(new ResourceStore.Key(
                            type, name, item.path("metadata").path("name").asText()));
                }
            }
        }
        mayHaveEmptied(name);
        ObjectNode left = store.get(target.key());
        return left == null ? found : left;
    }

    private void remove(ResourceStore.Key key) {
        try {
            store.delete(key, null);
        } catch (ServingException e) {
            if (e.code() != ErrorCode.NOT_FOUND) {
                throw e;
            }
        }
    }

    /** Removes the finalizer of a namespace that is being deleted if it is empty. */
    void mayHaveEmptied(String name) {
        ObjectNode found = name.isEmpty() ? null : store.get(new ResourceStore.Key(TYPE, "", name));
        if (found == null || !found.path("metadata").has("deletionTimestamp")) {
            return;
        }
        for (ResourceKind kind : ResourceKinds.all()) {
            if (kind.namespaced()
                    && !store.list(new ResourceStore.Type(kind.group(), kind.plural()), name)
                            .items()
                            .isEmpty()) {
                return;
            }
        }
        ArrayNode kept = ApiResponse.JSON.createArrayNode();
        found.path("metadata").path("finalizers").forEach(finalizer -> {
            if (!finalizer.asText().equals(CONTENTS)) {
                kept.add(finalizer);
            }
        });
        found.withObject("/metadata").set("finalizers", kept);
        try {
            store.update(TYPE, found, null);
        } catch (ServingException e) {
            if (e.code() != ErrorCode.NOT_FOUND) {
                throw e;
            }
        }
    }
}
