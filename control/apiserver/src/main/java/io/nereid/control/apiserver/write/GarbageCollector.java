// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.apiserver.write;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.api.store.ResourceStore.Change;
import io.nereid.control.api.store.ResourceStore.Watch;
import io.nereid.control.apiserver.http.ApiResponse;
import io.nereid.control.apiserver.http.ResourceAddress;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.RejectedExecutionException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Garbage collection: deletes a resource when none of the owners in its {@code ownerReferences} exists any more under
 * that name with that uid. It checks all resources at the start and afterwards those that change. Thread-safe: the
 * checks run on one thread of its own.
 */
public final class GarbageCollector implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(GarbageCollector.class);

    private final ResourceStore store;
    private final WriteHandler resources;
    private final ExecutorService thread = Threads.single("nereid-control-collector");
    private final List<Watch> watches = new ArrayList<>();
    /** The dependents by the owner's uid; confined to the thread. */
    private final Map<String, Set<ResourceAddress>> dependents = new HashMap<>();

    public GarbageCollector(ResourceStore store, WriteHandler resources) {
        this.store = store;
        this.resources = resources;
    }

    public void start() {
        for (ResourceKind kind : ResourceKinds.all()) {
            watches.add(store.watch(
                    new ResourceStore.Type(kind.group(), kind.plural()), null, 0, change -> later(kind, change)));
        }
    }

    private void later(ResourceKind kind, Change change) {
        boolean deleted = change.kind() == Change.Kind.DELETED;
        JsonNode metadata = change.resource().path("metadata");
        if (!deleted && metadata.path("ownerReferences").isEmpty()) {
            return;
        }
        try {
            thread.execute(() -> changed(kind, metadata, deleted));
        } catch (RejectedExecutionException e) {
            LOG.debug("a change is not checked, because the server is shutting down");
        }
    }

    private void changed(ResourceKind kind, JsonNode metadata, boolean deleted) {
        ResourceAddress target = new ResourceAddress(
                kind,
                metadata.path("namespace").asText(""),
                metadata.path("name").asText(),
                "");
        for (JsonNode reference : metadata.path("ownerReferences")) {
            String owner = reference.path("uid").asText();
            if (deleted) {
                dependents.computeIfPresent(owner, (uid, of) -> of.remove(target) && of.isEmpty() ? null : of);
            } else {
                dependents.computeIfAbsent(owner, uid -> new HashSet<>()).add(target);
            }
        }
        if (deleted) {
            Set<ResourceAddress> orphans =
                    dependents.remove(metadata.path("uid").asText());
            if (orphans != null) {
                orphans.forEach(this::collect);
            }
        } else {
            collect(target);
        }
    }

    /** Deletes a resource if none of its owners exists. */
    private void collect(ResourceAddress target) {
        try {
            ObjectNode now = store.get(target.key());
            if (now == null || now.path("metadata").has("deletionTimestamp") || owned(target, now)) {
                return;
            }
            LOG.info(
                    "{} {}/{} is deleted, because its owner does not exist any more",
                    target.kind().kind(),
                    target.namespace(),
                    target.name());
            resources.collect(
                    target, now.path("metadata").path("resourceVersion").asText());
        } catch (ServingException e) {
            // The change to a newer version causes another check.
            if (e.code() != ErrorCode.NOT_FOUND && e.code() != ErrorCode.ABORTED) {
                LOG.warn("{} {} cannot be deleted: {}", target.kind().kind(), target.name(), e.describe());
            }
        } catch (RuntimeException e) {
            LOG.error("{} {} cannot be looked at", target.kind().kind(), target.name(), e);
        }
    }

    private boolean owned(ResourceAddress target, ObjectNode resource) {
        JsonNode references = resource.path("metadata").path("ownerReferences");
        if (references.isEmpty()) {
            return true;
        }
        for (JsonNode reference : references) {
            ResourceKind kind = kind(reference);
            if (kind == null || kind.namespaced() && target.namespace().isEmpty()) {
                // The store cannot contain such an owner, so assume that it exists elsewhere.
                return true;
            }
            ObjectNode owner = store.get(new ResourceAddress(
                            kind,
                            kind.namespaced() ? target.namespace() : "",
                            reference.path("name").asText(),
                            "")
                    .key());
            if (owner != null
                    && owner.path("metadata")
                            .path("uid")
                            .asText()
                            .equals(reference.path("uid").asText())) {
                return true;
            }
        }
        return false;
    }

    private static @Nullable ResourceKind kind(JsonNode reference) {
        String group = group(reference.path("apiVersion").asText());
        for (ResourceKind kind : ResourceKinds.all()) {
            if (kind.kind().equals(reference.path("kind").asText())
                    && kind.group().equals(group)) {
                return kind;
            }
        }
        return null;
    }

    private static String group(String apiVersion) {
        int slash = apiVersion.indexOf('/');
        return slash < 0 ? "" : apiVersion.substring(0, slash);
    }

    /**
     * Removes an owner from the references of all its dependents, so that they are not collected (propagation policy
     * Orphan).
     */
    static void orphan(ResourceStore store, ResourceAddress owner, String uid) {
        for (ResourceKind kind : ResourceKinds.all()) {
            ResourceStore.Type type = new ResourceStore.Type(kind.group(), kind.plural());
            String namespace = owner.namespace().isEmpty() || !kind.namespaced() ? null : owner.namespace();
            for (ObjectNode item : store.list(type, namespace).items()) {
                if (item.path("metadata").get("ownerReferences") instanceof ArrayNode references) {
                    ArrayNode kept = ApiResponse.JSON.createArrayNode();
                    references.forEach(r -> {
                        if (!r.path("uid").asText().equals(uid)) {
                            kept.add(r);
                        }
                    });
                    if (kept.size() < references.size()) {
                        ObjectNode freed = item.deepCopy();
                        if (kept.isEmpty()) {
                            freed.withObject("/metadata").remove("ownerReferences");
                        } else {
                            freed.withObject("/metadata").set("ownerReferences", kept);
                        }
                        store.update(
                                type,
                                freed,
                                item.path("metadata").path("resourceVersion").asText());
                    }
                }
            }
        }
    }

    /** The first error in a resource's owner references as {@code path: message}; null for none. */
    static @Nullable String problem(JsonNode metadata) {
        int controllers = 0;
        int index = 0;
        for (JsonNode reference : metadata.path("ownerReferences")) {
            for (String field : List.of("apiVersion", "kind", "name", "uid")) {
                if (reference.path(field).asText("").isEmpty()) {
                    return "metadata.ownerReferences[" + index + "]." + field
                            + ": Invalid value: \"\": must not be empty";
                }
            }
            controllers += reference.path("controller").asBoolean(false) ? 1 : 0;
            index++;
        }
        return controllers > 1
                ? "metadata.ownerReferences: Invalid value: only one reference can have controller set to true"
                : null;
    }

    @Override
    public void close() {
        watches.forEach(Watch::close);
        thread.shutdown();
    }
}
