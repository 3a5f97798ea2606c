// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.cluster;

import com.fasterxml.jackson.databind.node.ObjectNode;
import com.google.errorprone.annotations.concurrent.GuardedBy;
import io.fabric8.kubernetes.api.model.GenericKubernetesResource;
import io.fabric8.kubernetes.api.model.GenericKubernetesResourceList;
import io.fabric8.kubernetes.api.model.ObjectMeta;
import io.fabric8.kubernetes.client.KubernetesClientException;
import io.fabric8.kubernetes.client.dsl.FilterWatchListDeletable;
import io.fabric8.kubernetes.client.dsl.NonNamespaceOperation;
import io.fabric8.kubernetes.client.dsl.Resource;
import io.fabric8.kubernetes.client.informers.ResourceEventHandler;
import io.fabric8.kubernetes.client.informers.SharedIndexInformer;
import io.fabric8.kubernetes.client.informers.cache.ItemStore;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.store.ResourceStore.Change;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The objects of one kind, kept up to date by a watch on the API server. An {@link ObjectFilter} drops objects and parts
 * of objects that the operator does not need. A write of the operator is added at once by {@link #written}, so that the
 * next reconciliation sees it although the watch has not told of it yet.
 *
 * <p>Thread-safe. Trees in the cache are shared and must not be changed.
 */
public final class ObjectCache implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ObjectCache.class);

    private final ResourceKind kind;
    private final ClusterClient client;
    private final ObjectFilter filter;
    private final String label;
    private final ReentrantLock lock = new ReentrantLock();

    /** Objects by {@code namespace/name}; written with the lock, read without. */
    private final Map<String, ObjectNode> objects = new ConcurrentHashMap<>();

    @GuardedBy("lock") private final List<Listener> listeners = new ArrayList<>();

    private final List<SharedIndexInformer<GenericKubernetesResource>> informers = new ArrayList<>();

    /** Opened when the objects of an informer's first list have been taken up. */
    private final List<CountDownLatch> listed = new ArrayList<>();

    /** Is told of changes in their order, with the cache locked; must not block. */
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
        this.client = client;
        this.kind = kind;
        this.label = label;
        this.filter = filter;
        if (namespaces.isEmpty() || !kind.namespaced()) {
            add(selected(client.all(kind).inAnyNamespace(), label, name));
        } else {
            namespaces.forEach(namespace -> add(selected(client.all(kind).inNamespace(namespace), label, name)));
        }
    }

    private static FilterWatchListDeletable<
                    GenericKubernetesResource, GenericKubernetesResourceList, Resource<GenericKubernetesResource>>
            selected(
                    io.fabric8.kubernetes.client.dsl.AnyNamespaceOperation<
                                    GenericKubernetesResource,
                                    GenericKubernetesResourceList,
                                    Resource<GenericKubernetesResource>>
                            all,
                    String label,
                    @Nullable String name) {
        var labelled = label.isEmpty() ? all : all.withLabelSelector(label);
        return name == null ? labelled : labelled.withField("metadata.name", name);
    }

    private static FilterWatchListDeletable<
                    GenericKubernetesResource, GenericKubernetesResourceList, Resource<GenericKubernetesResource>>
            selected(
                    NonNamespaceOperation<
                                    GenericKubernetesResource,
                                    GenericKubernetesResourceList,
                                    Resource<GenericKubernetesResource>>
                            all,
                    String label,
                    @Nullable String name) {
        var labelled = label.isEmpty() ? all : all.withLabelSelector(label);
        return name == null ? labelled : labelled.withField("metadata.name", name);
    }

    private void add(
            FilterWatchListDeletable<
                            GenericKubernetesResource,
                            GenericKubernetesResourceList,
                            Resource<GenericKubernetesResource>>
                    selected) {
        CountDownLatch first = new CountDownLatch(1);
        listed.add(first);
        informers.add(selected.runnableInformer(0)
                .itemStore(new Versions())
                .exceptionHandler((started, error) -> {
                    LOG.warn("the watch of {} is started again: {}", kind.plural(), message(error));
                    return true;
                })
                .addEventHandler(new ResourceEventHandler<>() {
                    @Override
                    public void onList(String version, boolean isEmpty) {
                        first.countDown();
                    }

                    @Override
                    public void onAdd(GenericKubernetesResource object) {
                        seen(object);
                    }

                    @Override
                    public void onUpdate(GenericKubernetesResource before, GenericKubernetesResource now) {
                        seen(now);
                    }

                    @Override
                    public void onDelete(GenericKubernetesResource object, boolean unknown) {
                        ended(object.getMetadata());
                    }
                }));
    }

    private static String message(Throwable error) {
        return error instanceof KubernetesClientException && error.getCause() != null
                ? error.getCause().toString()
                : error.toString();
    }

    /**
     * Starts the watch and waits until all objects that exist are known.
     *
     * @throws ServingException UNAVAILABLE when that takes longer than the limit, PERMISSION_DENIED
     */
    public void start(Duration limit) {
        for (SharedIndexInformer<GenericKubernetesResource> informer : informers) {
            try {
                informer.start().toCompletableFuture().get(limit.toMillis(), TimeUnit.MILLISECONDS);
                // The informer hands its objects on by another thread; this is called last.
                if (!listed.get(informers.indexOf(informer)).await(limit.toMillis(), TimeUnit.MILLISECONDS)) {
                    throw new TimeoutException();
                }
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw ServingException.of(ErrorCode.CANCELLED, "interrupted while " + kind.plural() + " were listed");
            } catch (TimeoutException e) {
                throw ServingException.of(
                        ErrorCode.UNAVAILABLE,
                        kind.plural() + " could not be listed within " + limit.toSeconds() + " s");
            } catch (java.util.concurrent.ExecutionException e) {
                Throwable cause = e.getCause() == null ? e : e.getCause();
                throw ServingException.wrap(
                        cause instanceof KubernetesClientException k && k.getCode() == 403
                                ? ErrorCode.PERMISSION_DENIED
                                : ErrorCode.UNAVAILABLE,
                        kind.plural() + " could not be listed: " + message(cause),
                        cause);
            }
        }
    }

    public ResourceKind kind() {
        return kind;
    }

    /** Returns an object; null if it does not exist or is filtered out. Must not be changed. */
    public @Nullable ObjectNode get(String namespace, String name) {
        return objects.get(namespace + "/" + name);
    }

    /** Returns all objects in no order. They must not be changed. */
    public Collection<ObjectNode> all() {
        return List.copyOf(objects.values());
    }

    /** Calls a listener for every object that exists as ADDED, and then for every change. */
    public AutoCloseable listen(Listener listener) {
        lock.lock();
        try {
            objects.values().forEach(object -> listener.changed(Change.Kind.ADDED, object));
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

    private void seen(GenericKubernetesResource object) {
        update(client.tree(object));
    }

    private void update(ObjectNode object) {
        ObjectNode kept = filter.keep(object);
        lock.lock();
        try {
            if (kept == null) {
                // An object that no longer passes the filter is as good as gone.
                ObjectNode before = objects.get(key(object));
                if (before != null && version(before) < version(object)) {
                    objects.remove(key(object));
                    tell(Change.Kind.DELETED, before);
                }
                return;
            }
            ObjectNode before = objects.get(key(kept));
            if (before != null && version(before) >= version(kept)) {
                return;
            }
            objects.put(key(kept), kept);
            tell(before == null ? Change.Kind.ADDED : Change.Kind.MODIFIED, kept);
        } finally {
            lock.unlock();
        }
    }

    private void ended(ObjectMeta metadata) {
        String key = (metadata.getNamespace() == null ? "" : metadata.getNamespace()) + "/" + metadata.getName();
        lock.lock();
        try {
            ObjectNode before = objects.get(key);
            // An object of the same name that was made since then stays.
            if (before != null && before.path("metadata").path("uid").asText().equals(metadata.getUid())) {
                objects.remove(key);
                tell(Change.Kind.DELETED, before);
            }
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock") private void tell(Change.Kind change, ObjectNode object) {
        for (Listener listener : listeners) {
            listener.changed(change, object);
        }
    }

    private static String key(ObjectNode object) {
        return object.path("metadata").path("namespace").asText("") + "/"
                + object.path("metadata").path("name").asText();
    }

    /** Versions of an API server grow; since Kubernetes 1.35 clients may compare them. */
    private static long version(ObjectNode object) {
        try {
            return Long.parseLong(
                    object.path("metadata").path("resourceVersion").asText("0"));
        } catch (NumberFormatException e) {
            return 0;
        }
    }

    @Override
    public void close() {
        informers.forEach(SharedIndexInformer::stop);
    }

    /** What the informer itself needs of each object: its name, uid and version. Confined to the informer's lock. */
    private static final class Versions implements ItemStore<GenericKubernetesResource> {
        private final Map<String, GenericKubernetesResource> items = new ConcurrentHashMap<>();

        @Override
        public String getKey(GenericKubernetesResource object) {
            ObjectMeta metadata = object.getMetadata();
            return (metadata.getNamespace() == null ? "" : metadata.getNamespace()) + "/" + metadata.getName();
        }

        @Override
        public @Nullable GenericKubernetesResource put(String key, GenericKubernetesResource object) {
            ObjectMeta metadata = new ObjectMeta();
            metadata.setNamespace(object.getMetadata().getNamespace());
            metadata.setName(object.getMetadata().getName());
            metadata.setUid(object.getMetadata().getUid());
            metadata.setResourceVersion(object.getMetadata().getResourceVersion());
            GenericKubernetesResource small = new GenericKubernetesResource();
            small.setMetadata(metadata);
            return items.put(key, small);
        }

        @Override
        public @Nullable GenericKubernetesResource remove(String key) {
            return items.remove(key);
        }

        @Override
        public Stream<String> keySet() {
            return items.keySet().stream();
        }

        @Override
        public Stream<GenericKubernetesResource> values() {
            return items.values().stream();
        }

        @Override
        public int size() {
            return items.size();
        }

        @Override
        public @Nullable GenericKubernetesResource get(String key) {
            return items.get(key);
        }

        @Override
        public boolean isFullState() {
            return false;
        }
    }
}
