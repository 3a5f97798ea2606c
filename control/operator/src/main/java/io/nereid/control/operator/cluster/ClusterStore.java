// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.cluster;

import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.store.ResourceStore;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * The resources of a cluster as a {@link ResourceStore}: reads come from caches, writes go to the API server. The version
 * of this store counts the changes that it has seen, whereas the {@code resourceVersion} of a resource is the API
 * server's. Only the types of its caches exist in it. Thread-safe: guarded by one lock, which is never held during a call
 * to the API server.
 */
public final class ClusterStore implements ResourceStore {
    /** Changes that a watch can catch up with. */
    private static final int KEPT = 500;

    private final ClusterClient client;
    private final Map<Type, ObjectCache> caches;
    private final Set<Type> hidden;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock") private long version = 1;

    @GuardedBy("lock") private final Deque<Seen> changes = new ArrayDeque<>();

    @GuardedBy("lock") private final List<Subscription> subscriptions = new ArrayList<>();

    /** A change, whose object is kept as text. */
    private record Seen(Type type, Change.Kind kind, long version, PackedObject object) {}

    private record Subscription(Type type, @Nullable String namespace, Consumer<Change> listener) {
        boolean wants(Type type, ObjectNode resource) {
            return this.type.equals(type)
                    && (namespace == null
                            || namespace.equals(
                                    resource.path("metadata").path("namespace").asText()));
        }
    }

    /**
     * Creates a store without starting its caches.
     *
     * @param caches a cache for each type; owned by the store, which closes them
     * @param hidden types of which nothing is to be seen, such as those of the cluster for an operator of namespaces
     */
    public ClusterStore(ClusterClient client, List<ObjectCache> caches, Set<ResourceKind> hidden) {
        this.client = client;
        this.hidden = hidden.stream().map(ClusterStore::type).collect(Collectors.toUnmodifiableSet());
        this.caches = caches.stream().collect(Collectors.toUnmodifiableMap(ClusterStore::type, cache -> cache));
    }

    private static Type type(ObjectCache cache) {
        return type(cache.kind());
    }

    private static Type type(ResourceKind kind) {
        return new Type(kind.group(), kind.plural());
    }

    /**
     * Starts all watches and waits until all resources are known.
     *
     * @throws ServingException UNAVAILABLE when that takes longer than the limit, PERMISSION_DENIED
     */
    public void start(Duration limit) {
        ObjectCache.startAll(caches.values(), limit);
        // What exists by now is in every listing, and every watch begins with one.
        for (ObjectCache cache : caches.values()) {
            AutoCloseable unused = cache.listen((change, object) -> seen(type(cache), change, object));
        }
    }

    private void seen(Type type, Change.Kind kind, ObjectNode object) {
        lock.lock();
        try {
            changes.add(new Seen(type, kind, ++version, PackedObject.of(object)));
            if (changes.size() > KEPT) {
                changes.remove();
            }
            for (Subscription subscription : subscriptions) {
                if (subscription.wants(type, object)) {
                    subscription.listener.accept(new Change(kind, version, object.deepCopy()));
                }
            }
        } finally {
            lock.unlock();
        }
    }

    private ObjectCache cache(Type type) {
        ObjectCache cache = caches.get(type);
        if (cache == null) {
            throw ServingException.of(ErrorCode.NOT_FOUND, "the operator does not watch " + type.plural());
        }
        return cache;
    }

    @Override
    public @Nullable ObjectNode get(Key key) {
        if (hidden.contains(key.type())) {
            return null;
        }
        ObjectNode found = cache(key.type()).get(key.namespace(), key.name());
        return found == null ? null : found.deepCopy();
    }

    @Override
    public Listing list(Type type, @Nullable String namespace) {
        if (hidden.contains(type)) {
            return new Listing(0, List.of());
        }
        ObjectCache cache = cache(type);
        long at;
        lock.lock();
        try {
            at = version;
        } finally {
            lock.unlock();
        }
        // Changes between the two steps are in the listing and come again with a watch from this version; none is lost.
        List<ObjectNode> items = cache.all().stream()
                .filter(object -> namespace == null
                        || namespace.equals(
                                object.path("metadata").path("namespace").asText()))
                .sorted(Comparator.comparing((ObjectNode object) ->
                                object.path("metadata").path("namespace").asText())
                        .thenComparing(
                                object -> object.path("metadata").path("name").asText()))
                .map(ObjectNode::deepCopy)
                .toList();
        return new Listing(at, items);
    }

    @Override
    public ObjectNode create(Type type, ObjectNode resource) {
        ObjectCache cache = cache(type);
        ObjectNode without = resource.deepCopy();
        without.withObject("/metadata").remove("resourceVersion");
        return written(cache, client.create(cache.kind(), without));
    }

    @Override
    public ObjectNode update(Type type, ObjectNode resource, @Nullable String expectedVersion) {
        ObjectCache cache = cache(type);
        return written(cache, client.update(cache.kind(), versioned(resource, expectedVersion)));
    }

    @Override
    public ObjectNode updateStatus(Type type, ObjectNode resource, @Nullable String expectedVersion) {
        ObjectCache cache = cache(type);
        return written(cache, client.updateStatus(cache.kind(), versioned(resource, expectedVersion)));
    }

    private static ObjectNode versioned(ObjectNode resource, @Nullable String version) {
        ObjectNode copy = resource.deepCopy();
        ObjectNode metadata = copy.withObject("/metadata");
        if (version == null) {
            metadata.remove("resourceVersion");
        } else {
            metadata.put("resourceVersion", version);
        }
        return copy;
    }

    private static ObjectNode written(ObjectCache cache, ObjectNode stored) {
        cache.written(stored);
        return stored;
    }

    @Override
    public ObjectNode delete(Key key, @Nullable String expectedVersion) {
        ObjectCache cache = cache(key.type());
        ObjectNode last = cache.get(key.namespace(), key.name());
        if (last == null) {
            throw ServingException.of(ErrorCode.NOT_FOUND, cache.kind().plural() + " \"" + key.name() + "\" not found");
        }
        client.delete(cache.kind(), key.namespace(), key.name(), expectedVersion);
        return last.deepCopy();
    }

    @Override
    public Watch watch(Type type, @Nullable String namespace, long fromVersion, Consumer<Change> listener) {
        if (hidden.contains(type)) {
            return () -> {};
        }
        ObjectCache unused = cache(type);
        Subscription subscription = new Subscription(type, namespace, listener);
        lock.lock();
        try {
            if (fromVersion < version) {
                Seen oldest = changes.peek();
                if (oldest == null || oldest.version > fromVersion + 1) {
                    throw ServingException.of(
                            ErrorCode.OUT_OF_RANGE,
                            "changes since version " + fromVersion + " are no longer known; list again");
                }
                for (Seen seen : changes) {
                    ObjectNode object =
                            seen.version > fromVersion && seen.type.equals(type) ? seen.object.tree() : null;
                    if (object != null && subscription.wants(type, object)) {
                        listener.accept(new Change(seen.kind, seen.version, object.deepCopy()));
                    }
                }
            }
            subscriptions.add(subscription);
        } finally {
            lock.unlock();
        }
        return () -> {
            lock.lock();
            try {
                subscriptions.remove(subscription);
            } finally {
                lock.unlock();
            }
        };
    }

    @Override
    public void close() {
        caches.values().forEach(ObjectCache::close);
    }
}
