// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.store.ResourceStore;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.UUID;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/** An in-memory resource store. Watches are notified on the thread of the change. */
final class MemoryStore implements ResourceStore {
    private final Map<Type, Map<String, ObjectNode>> all = new java.util.HashMap<>();
    private final List<Watcher> watchers = new ArrayList<>();
    private long version;
    int writes;
    int failing;

    private record Watcher(Type type, Consumer<Change> listener) {}

    private static String key(String namespace, String name) {
        return namespace + "/" + name;
    }

    private static String key(ObjectNode r) {
        return key(
                r.path("metadata").path("namespace").asText(""),
                r.path("metadata").path("name").asText());
    }

    private Map<String, ObjectNode> of(Type type) {
        return all.computeIfAbsent(type, t -> new TreeMap<>());
    }

    @Override
    public synchronized @Nullable ObjectNode get(Key key) {
        ObjectNode r = of(key.type()).get(key(key.namespace(), key.name()));
        return r == null ? null : r.deepCopy();
    }

    @Override
    public synchronized Listing list(Type type, @Nullable String namespace) {
        return new Listing(
                version, of(type).values().stream().map(ObjectNode::deepCopy).toList());
    }

    @Override
    public synchronized ObjectNode create(Type type, ObjectNode resource) {
        if (of(type).containsKey(key(resource))) {
            throw ServingException.of(ErrorCode.ALREADY_EXISTS, key(resource) + " is there");
        }
        ObjectNode copy = resource.deepCopy();
        copy.withObject("/metadata").put("uid", UUID.randomUUID().toString());
        return put(type, copy, Change.Kind.ADDED);
    }

    private ObjectNode put(Type type, ObjectNode copy, Change.Kind kind) {
        if (failing > 0) {
            failing--;
            throw ServingException.of(ErrorCode.RESOURCE_EXHAUSTED, "the disk is full");
        }
        writes++;
        copy.withObject("/metadata").put("resourceVersion", String.valueOf(++version));
        of(type).put(key(copy), copy);
        notifyWatches(type, kind, copy);
        return copy.deepCopy();
    }

    private void notifyWatches(Type type, Change.Kind kind, ObjectNode resource) {
        List.copyOf(watchers).stream()
                .filter(w -> w.type.equals(type))
                .forEach(w -> w.listener.accept(new Change(kind, version, resource.deepCopy())));
    }

    @Override
    public synchronized ObjectNode update(Type type, ObjectNode resource, @Nullable String expectedVersion) {
        ObjectNode old = of(type).get(key(resource));
        if (old == null) {
            throw ServingException.of(ErrorCode.NOT_FOUND, key(resource) + " is not there");
        }
        if (expectedVersion != null
                && !old.path("metadata").path("resourceVersion").asText().equals(expectedVersion)) {
            throw ServingException.of(ErrorCode.ABORTED, key(resource) + " has changed");
        }
        ObjectNode copy = resource.deepCopy();
        copy.withObject("/metadata").set("uid", old.path("metadata").path("uid"));
        if (copy.path("metadata").hasNonNull("deletionTimestamp")
                && copy.path("metadata").path("finalizers").isEmpty()) {
            version++;
            of(type).remove(key(copy));
            notifyWatches(type, Change.Kind.DELETED, copy);
            return copy;
        }
        return put(type, copy, Change.Kind.MODIFIED);
    }

    @Override
    public synchronized ObjectNode delete(Key key, @Nullable String expectedVersion) {
        ObjectNode old = of(key.type()).get(key(key.namespace(), key.name()));
        if (old == null) {
            throw ServingException.of(ErrorCode.NOT_FOUND, key + " is not there");
        }
        if (!old.path("metadata").path("finalizers").isEmpty()) {
            ObjectNode copy = old.deepCopy();
            copy.withObject("/metadata").put("deletionTimestamp", "2026-01-01T00:00:00Z");
            return put(key.type(), copy, Change.Kind.MODIFIED);
        }
        version++;
        of(key.type()).remove(key(key.namespace(), key.name()));
        notifyWatches(key.type(), Change.Kind.DELETED, old);
        return old.deepCopy();
    }

    @Override
    public synchronized Watch watch(
            Type type, @Nullable String namespace, long fromVersion, Consumer<Change> listener) {
        Watcher watcher = new Watcher(type, listener);
        watchers.add(watcher);
        return () -> watchers.remove(watcher);
    }

    @Override
    public void close() {}
}
