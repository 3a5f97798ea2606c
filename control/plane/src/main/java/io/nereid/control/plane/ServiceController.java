// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.plane;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.ResourceKind;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.api.store.ResourceStore.Change;
import io.nereid.control.core.Plan;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.plane.loop.EventLoop;
import io.nereid.control.plane.loop.Retries;
import io.nereid.control.plane.loop.StoreWatches;
import io.nereid.control.plane.loop.WorkQueue;
import io.nereid.control.plane.reconcile.EventSink;
import io.nereid.control.plane.reconcile.RuntimeCatalogCache;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The controller of InferenceServices and InferenceGraphs: the loop that is the same on one machine and in a cluster. It
 * watches the resource store and what the reconciler observes, lets the {@link ServiceReconciler} plan each changed
 * service and carry out the plan, and writes status and events. All lasting state is in the store, so a restarted server
 * resumes where the last one ended.
 *
 * <p>Thread-safe: a service is reconciled by one thread at a time. A failed reconciliation is retried after a second,
 * doubling to five minutes.
 *
 * <pre>{@code
 * var loop = EventLoop.threads(Clock.system());
 * var catalogs = new RuntimeCatalogCache(() -> address, InferenceServiceConfig::defaults);
 * var events = new EventRecorder(store, loop.clock());
 * var reconciler = new PlanReconciler(store, infrastructure);
 * try (var controller = new ServiceController(store, reconciler, catalogs, events, Retries.ofReconciliation(), loop)) {
 *     controller.start();
 *     boolean settled = controller.settled(Duration.ofSeconds(30));
 * }
 * }</pre>
 */
public final class ServiceController implements AutoCloseable {
    /** Keeps a deleted service until its workloads have ended. */
    static final String FINALIZER = "inferenceservice.finalizers";

    private static final Logger LOG = LoggerFactory.getLogger(ServiceController.class);
    private static final ResourceStore.Type SERVICES = type(ResourceKinds.INFERENCE_SERVICE);
    private static final ResourceStore.Type GRAPHS = type(ResourceKinds.INFERENCE_GRAPH);
    private static final Duration SWEEP = Duration.ofMinutes(5);

    private final ResourceStore store;
    private final ServiceReconciler reconciler;
    private final EventLoop loop;
    private final WorkQueue<ServiceKey> queue;
    private final RuntimeCatalogCache catalogs;
    private final EventSink events;
    /**
     * The planning inputs of each resource at its last plan, as text; changes outside of them, such as status, need no new plan.
     */
    private final Map<ServiceKey, String> seen = new ConcurrentHashMap<>();

    private final Set<ServiceKey> known = ConcurrentHashMap.newKeySet();

    /** The graphs of {@link #known}. */
    private final Set<ServiceKey> graphs = ConcurrentHashMap.newKeySet();

    private final StoreWatches watches;
    /** Resources that were in the store at the start and have not been reconciled yet. */
    private final Set<ServiceKey> first = ConcurrentHashMap.newKeySet();

    private final CountDownLatch initialSync = new CountDownLatch(1);
    private volatile boolean closed;

    /** The key of a service or graph in the work queue. */
    private record ServiceKey(boolean graph, String namespace, String name) {
        ResourceStore.Key inStore() {
            return new ResourceStore.Key(graph ? GRAPHS : SERVICES, namespace, name);
        }

        @Override
        public String toString() {
            return (graph ? "InferenceGraph " : "InferenceService ") + namespace + "/" + name;
        }
    }

    /**
     * Creates a controller without starting it.
     *
     * @param catalogs filled by this controller from the store
     * @param retries delays after a failed reconciliation
     * @param loop owned by the controller, which closes it
     */
    public ServiceController(
            ResourceStore store,
            ServiceReconciler reconciler,
            RuntimeCatalogCache catalogs,
            EventSink events,
            Retries retries,
            EventLoop loop) {
        this.store = store;
        this.reconciler = reconciler;
        this.loop = loop;
        this.watches = new StoreWatches(store, loop);
        this.queue = new WorkQueue<>(loop, retries, this::work);
        this.catalogs = catalogs;
        this.events = events;
    }

    private static ResourceStore.Type type(ResourceKind kind) {
        return new ResourceStore.Type(kind.group(), kind.plural());
    }

    /** Starts to watch the store. All stored services are planned and applied soon after. */
    public void start() {
        Duration pace = reconciler.pace();
        reconciler.onChange((graph, namespace, name) -> {
            ServiceKey key = new ServiceKey(graph, namespace, name);
            if (pace.isZero()) {
                queue.add(key);
            } else {
                queue.addAfter(key, pace);
            }
        });
        // Runtimes and settings first: every plan depends on them.
        watches.follow(
                type(ResourceKinds.CLUSTER_SERVING_RUNTIME), c -> catalog(RuntimeCatalogCache.Role.CLUSTER_RUNTIME, c));
        watches.follow(type(ResourceKinds.SERVING_RUNTIME), c -> catalog(RuntimeCatalogCache.Role.RUNTIME, c));
        watches.follow(
                type(ResourceKinds.CLUSTER_STORAGE_CONTAINER),
                c -> catalog(RuntimeCatalogCache.Role.STORAGE_CONTAINER, c));
        watches.follow(type(ResourceKinds.CONFIG_MAP), c -> {
            if (name(c.resource()).equals(InferenceServiceConfig.CONFIG_MAP)) {
                catalog(RuntimeCatalogCache.Role.CONFIG, c);
            }
        });
        watches.follow(type(ResourceKinds.NAMESPACE), c -> catalog(RuntimeCatalogCache.Role.NAMESPACE, c));
        for (ObjectNode service : store.list(SERVICES, null).items()) {
            first.add(new ServiceKey(false, namespace(service), name(service)));
        }
        for (ObjectNode graph : store.list(GRAPHS, null).items()) {
            first.add(new ServiceKey(true, namespace(graph), name(graph)));
        }
        watches.follow(SERVICES, c -> changed(false, c));
        watches.follow(GRAPHS, c -> changed(true, c));
        reconciler.retriedAfter().forEach(type -> watches.follow(type, c -> reconciler.retry(namespace(c.resource()))));
        if (first.isEmpty()) {
            initialSync.countDown();
        }
        sweep();
    }

    /**
     * Waits until every resource that was in the store at the start has been planned and applied once. From then on
     * services have their routes, and statuses describe this server rather than the previous one.
     *
     * @return false when the time limit was exceeded
     */
    public boolean settled(Duration limit) throws InterruptedException {
        return initialSync.await(limit.toMillis(), TimeUnit.MILLISECONDS);
    }

    private void reconciled(ServiceKey key) {
        if (first.remove(key) && first.isEmpty()) {
            initialSync.countDown();
        }
    }

    private void sweep() {
        loop.io(() -> {
            try {
                events.sweep();
            } catch (RuntimeException e) {
                LOG.debug("old events cannot be removed", e);
            }
        });
        EventLoop.Timer unused = loop.after(SWEEP, () -> {
            if (!closed) {
                sweep();
            }
        });
    }

    // ---- watching ----

    private void catalog(RuntimeCatalogCache.Role role, Change change) {
        if (!catalogs.put(role, change.resource(), change.kind() == Change.Kind.DELETED)) {
            return;
        }
        String namespace =
                role == RuntimeCatalogCache.Role.NAMESPACE ? name(change.resource()) : namespace(change.resource());
        boolean everywhere =
                namespace.isEmpty() || role != RuntimeCatalogCache.Role.NAMESPACE && namespace.equals(catalogs.home());
        known.stream().filter(i -> everywhere || i.namespace.equals(namespace)).forEach(queue::add);
    }

    private void changed(boolean graph, Change change) {
        ObjectNode resource = change.resource();
        ServiceKey key = new ServiceKey(graph, namespace(resource), name(resource));
        if (change.kind() == Change.Kind.DELETED) {
            seen.remove(key);
        } else {
            known.add(key);
            if (graph) {
                graphs.add(key);
            }
            // The controller's own status updates need no new plan.
            if (planningInputs(resource).equals(seen.get(key))) {
                return;
            }
        }
        queue.add(key);
    }

    /** Returns the parts of a resource that a plan depends on. */
    private static String planningInputs(ObjectNode resource) {
        ObjectNode inputs = JsonNodeFactory.instance.objectNode();
        inputs.set("spec", resource.path("spec"));
        JsonNode metadata = resource.path("metadata");
        for (String field : List.of("uid", "generation", "labels", "annotations", "deletionTimestamp", "finalizers")) {
            if (metadata.has(field)) {
                inputs.set(field, metadata.get(field));
            }
        }
        return inputs.toString();
    }

    private static String name(ObjectNode resource) {
        return resource.path("metadata").path("name").asText("");
    }

    private static String namespace(ObjectNode resource) {
        return resource.path("metadata").path("namespace").asText("");
    }

    // ---- reconciling ----

    private void work(ServiceKey key) {
        if (closed) {
            return;
        }
        try {
            reconcile(key);
        } finally {
            reconciled(key);
        }
    }

    private void reconcile(ServiceKey key) {
        ObjectNode resource = store.get(key.inStore());
        if (resource == null) {
            boolean unused = reconciler.remove(key.graph, key.namespace, key.name);
            reconciler.forget(key.graph, key.namespace, key.name);
            known.remove(key);
            graphs.remove(key);
            seen.remove(key);
            queueGraphs(key);
            return;
        }
        seen.put(key, planningInputs(resource));
        if (resource.path("metadata").hasNonNull("deletionTimestamp")) {
            end(key, resource);
            return;
        }
        if (!key.graph && reconciler.needsFinalizer() && !hasFinalizer(resource)) {
            ArrayNode finalizers = resource.withObject("/metadata").withArray("finalizers");
            finalizers.add(FINALIZER);
            resource = updated(key, resource, false);
            if (resource == null) {
                return;
            }
            seen.put(key, planningInputs(resource));
        }
        plan(key, resource);
    }

    private static boolean hasFinalizer(ObjectNode resource) {
        for (JsonNode f : resource.path("metadata").path("finalizers")) {
            if (f.asText().equals(FINALIZER)) {
                return true;
            }
        }
        return false;
    }

    private void end(ServiceKey key, ObjectNode resource) {
        boolean gone = reconciler.remove(key.graph, key.namespace, key.name);
        if (gone && hasFinalizer(resource)) {
            ArrayNode kept = JsonNodeFactory.instance.arrayNode();
            resource.path("metadata").path("finalizers").forEach(f -> {
                if (!f.asText().equals(FINALIZER)) {
                    kept.add(f);
                }
            });
            resource.withObject("/metadata").set("finalizers", kept);
            ObjectNode unused = updated(key, resource, false);
            if (kept.isEmpty()) {
                reconciler.forget(key.graph, key.namespace, key.name);
            }
            queue.add(key);
        }
        // Otherwise the reconciler reports the end of the last workload, which queues this service again.
    }

    /**
     * Writes a resource; null when the stored version is newer (optimistic concurrency), which is then reconciled
     * instead.
     */
    private @Nullable ObjectNode updated(ServiceKey key, ObjectNode resource, boolean status) {
        try {
            String version = resource.path("metadata").path("resourceVersion").asText();
            return status
                    ? store.updateStatus(key.inStore().type(), resource, version)
                    : store.update(key.inStore().type(), resource, version);
        } catch (ServingException e) {
            if (e.code() == ErrorCode.ABORTED || e.code() == ErrorCode.NOT_FOUND) {
                queue.add(key);
                return null;
            }
            throw e;
        }
    }

    private void plan(ServiceKey key, ObjectNode resource) {
        Instant now = Instant.ofEpochMilli(loop.clock().millis());
        RuntimeCatalog catalog = catalogs.of(key.namespace);
        ServiceReconciler.Outcome outcome = key.graph
                ? reconciler.reconcileGraph(resource, name -> service(key.namespace, name), catalog, now)
                : reconciler.reconcile(resource, catalog, now);
        if (!isSame(outcome.status(), resource.path("status"))) {
            resource.set("status", outcome.status());
            ObjectNode written = updated(key, resource, true);
            if (written == null) {
                return;
            }
            queueGraphs(key);
        }
        for (Plan.Event event : outcome.events()) {
            events.record(resource, event);
        }
        if (outcome.requeueAfter() != null) {
            queue.addAfter(key, outcome.requeueAfter());
        }
    }

    /** Whether two statuses say the same; a number that was read may have another type than one that was computed. */
    private static boolean isSame(ObjectNode status, JsonNode stored) {
        return (status.isEmpty() && stored.isMissingNode())
                || status.equals(
                        (one, other) -> one.isNumber() && other.isNumber()
                                ? one.decimalValue().compareTo(other.decimalValue())
                                : one.equals(other) ? 0 : 1,
                        stored);
    }

    private @Nullable InferenceService service(String namespace, String name) {
        ObjectNode tree = store.get(new ResourceStore.Key(SERVICES, namespace, name));
        return tree == null ? null : InferenceService.read(tree);
    }

    /** Queues the graphs of the namespace, for they call its services. */
    private void queueGraphs(ServiceKey key) {
        if (!key.graph) {
            graphs.stream()
                    .filter(graph -> graph.namespace.equals(key.namespace))
                    .forEach(queue::add);
        }
    }

    /** Stops reconciling. What runs keeps running. */
    @Override
    public synchronized void close() {
        closed = true;
        watches.close();
        queue.close();
        loop.close();
    }
}
