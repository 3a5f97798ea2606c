// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.cluster;

import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.store.ResourceStore.Change;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The objects of one kind, kept up to date by a watch on the API server. An {@link ObjectFilter} drops objects and parts
 * of objects that the operator does not need; a change of those parts alone is not an event for listeners. A write of the operator is added at once by {@link #written}, so that the
 * next reconciliation sees it although the watch has not told of it yet.
 *
 * <p>Thread-safe. Objects are kept as text. The trees that are handed out are shared, and must not be changed.
 */
public final class ObjectCache implements AutoCloseable {
    private static final int LISTS_AT_ONCE = 2;

    private final ResourceKind kind;
    private final ObjectFilter filter;
    private final String label;
    private final ReentrantLock lock = new ReentrantLock();

    /** Objects by {@code namespace/name}; written with the lock, read without. */
    private final Map<String, PackedObject> objects = new ConcurrentHashMap<>();

    @GuardedBy("lock") private final List<Listener> listeners = new ArrayList<>();

    private final List<ObjectWatch> watches = new ArrayList<>();

    /** Receives changes in their order, with the cache locked; must not block. */
    @FunctionalInterface
    public interface Listener {
        void changed(Change.Kind change, ObjectNode object);
    }

    /** Selects objects, and the parts of them that are kept. */
    @FunctionalInterface
    public interface ObjectFilter {
        /** Keeps every object as it is. */
        ObjectFilter ALL = tree -> tree;

        /** Returns what is kept of an object, which may be the tree itself after changes; null for nothing. */
        @Nullable ObjectNode keep(ObjectNode tree);
    }

    /**
     * Creates a cache without starting its watch.
     *
     * @param namespaces the namespaces to watch; empty for all of the cluster
     * @param label the label that objects must have; empty for all objects
     */
    public ObjectCache(
            ClusterClient client, ResourceKind kind, Set<String> namespaces, String label, ObjectFilter filter) {
        this(client, kind, namespaces, label, null, filter);
    }

    /** @param name the only name to watch; null for all */
    public ObjectCache(
            ClusterClient client,
            ResourceKind kind,
            Set<String> namespaces,
            String label,
            @Nullable String name,
            ObjectFilter filter) {
        this.kind = kind;
        this.label = label;
        this.filter = filter;
        String selection = selection(label, name);
        if (namespaces.isEmpty() || !kind.namespaced()) {
            watches.add(client.watch(kind, null, selection, new Followed("")));
        } else {
            namespaces.forEach(in -> watches.add(client.watch(kind, in, selection, new Followed(in + "/"))));
        }
    }

    private static String selection(String label, @Nullable String name) {
        List<String> parts = new ArrayList<>();
        if (!label.isEmpty()) {
            parts.add("labelSelector=" + ApiRequests.encoded(label));
        }
        if (name != null) {
            parts.add("fieldSelector=" + ApiRequests.encoded("metadata.name=" + name));
        }
        return String.join("&", parts);
    }

    /**
     * Starts the watch and waits until all objects that exist are known.
     *
     * @throws ServingException UNAVAILABLE when that takes longer than the limit, PERMISSION_DENIED
     */
    public void start(Duration limit) {
        watches.forEach(watch -> watch.start(limit));
    }

    /**
     * Starts several caches at a time, and waits for all.
     *
     * @throws ServingException as {@link #start}
     */
    public static void startAll(Collection<ObjectCache> caches, Duration limit) {
        ThreadPoolExecutor threads = Threads.pool("nereid-lists", LISTS_AT_ONCE);
        try {
            CompletableFuture.allOf(caches.stream()
                            .map(cache -> CompletableFuture.runAsync(() -> cache.start(limit), threads))
                            .toArray(CompletableFuture[]::new))
                    .join();
        } catch (CompletionException e) {
            throw ServingException.from(e.getCause() == null ? e : e.getCause());
        } finally {
            threads.shutdown();
        }
    }

    public ResourceKind kind() {
        return kind;
    }

    /** Returns an object; null if it does not exist or is filtered out. Must not be changed. */
    public @Nullable ObjectNode get(String namespace, String name) {
        PackedObject found = objects.get(namespace + "/" + name);
        return found == null ? null : found.tree();
    }

    /** Returns all objects in no order. They must not be changed. */
    public Collection<ObjectNode> all() {
        return objects.values().stream().map(PackedObject::tree).toList();
    }

    /**
     * Calls a listener for every object that becomes known from now on, as ADDED, and for every change. A listener that comes
     * before {@link #start} learns of all objects.
     */
    public AutoCloseable listen(Listener listener) {
        lock.lock();
        try {
            listeners.add(listener);
        } finally {
            lock.unlock();
        }
        return () -> {
            lock.lock();
            try {
                listeners.remove(listener);
            } finally {
                lock.unlock();
            }
        };
    }

    /** Whether an object has the label by which this cache selects. */
    public boolean selects(ObjectNode object) {
        return label.isEmpty() || object.path("metadata").path("labels").has(label);
    }

    /** Adds what the API server returned for a write, unless the cache has it, or a newer version of it. */
    public void written(ObjectNode object) {
        update(object.deepCopy());
    }

    private void update(ObjectNode object) {
        String key = key(object);
        long version = PackedObject.version(object);
        PackedObject known = objects.get(key);
        if (known != null && known.version() >= version) {
            // What the operator wrote comes again by the watch.
            return;
        }
        ObjectNode kept = filter.keep(object);
        PackedObject packed = kept == null ? null : PackedObject.of(kept);
        lock.lock();
        try {
            PackedObject before = objects.get(key);
            if (before != null && before.version() >= version) {
                return;
            }
            if (kept != null && packed != null) {
                objects.put(key, packed);
                if (before == null || !before.isLike(packed)) {
                    notifyListeners(before == null ? Change.Kind.ADDED : Change.Kind.MODIFIED, kept);
                }
            } else if (before != null) {
                // An object that no longer passes the filter is as good as gone.
                objects.remove(key);
                notifyListeners(Change.Kind.DELETED, before.tree());
            }
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock") private void remove(String key, PackedObject object) {
        if (objects.remove(key, object)) {
            notifyListeners(Change.Kind.DELETED, object.tree());
        }
    }

    /** Receives the events of a watch; with several namespaces, each has one of its own. */
    private final class Followed implements ObjectWatch.Target {
        private final String prefix;

        /** @param prefix the beginning of the keys of its objects */
        Followed(String prefix) {
            this.prefix = prefix;
        }

        @Override
        public void seen(ObjectNode object) {
            update(object);
        }

        @Override
        public void ended(ObjectNode object) {
            String key = key(object);
            lock.lock();
            try {
                PackedObject before = objects.get(key);
                // An object of the same name that was made since then stays.
                if (before != null
                        && before.uid()
                                .equals(object.path("metadata").path("uid").asText())) {
                    remove(key, before);
                }
            } finally {
                lock.unlock();
            }
        }

        @Override
        public void listed(Set<String> keys, long version) {
            lock.lock();
            try {
                Map.copyOf(objects).forEach((key, object) -> {
                    if (key.startsWith(prefix) && !keys.contains(key) && object.version() <= version) {
                        remove(key, object);
                    }
                });
            } finally {
                lock.unlock();
            }
        }
    }

    @GuardedBy("lock") private void notifyListeners(Change.Kind change, ObjectNode object) {
        for (Listener listener : listeners) {
            listener.changed(change, object);
        }
    }

    /** The key of an object: {@code namespace/name}. */
    static String key(ObjectNode object) {
        return object.path("metadata").path("namespace").asText("") + "/"
                + object.path("metadata").path("name").asText();
    }

    @Override
    public void close() {
        watches.forEach(ObjectWatch::close);
    }
}
