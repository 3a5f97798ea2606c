// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.api.InferenceGraph;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.Kind;
import io.nereid.control.api.Kinds;
import io.nereid.control.api.ServiceConfig;
import io.nereid.control.core.Catalog;
import io.nereid.control.core.Infrastructure;
import io.nereid.control.core.Observed;
import io.nereid.control.core.Plan;
import io.nereid.control.core.Planner;
import io.nereid.control.core.ResourceStore;
import io.nereid.control.core.ResourceStore.Change;
import io.nereid.control.core.Revision;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The loop: hears of resources and of what runs, plans each service anew, has the plan come true, and writes status, revisions
 * and events. Everything that it must remember is in the store, so that after any end everything comes back.
 *
 * <p>Thread-safe: each service is worked on by one thread at a time. What fails is tried again after a second, doubling to five
 * minutes.
 */
public final class LocalPlane implements AutoCloseable {
    /** Keeps a deleted service until its workloads have ended. */
    static final String FINALIZER = "inferenceservice.finalizers";

    private static final Logger LOG = LoggerFactory.getLogger(LocalPlane.class);
    private static final ResourceStore.Type SERVICES = type(Kinds.INFERENCE_SERVICE);
    private static final ResourceStore.Type GRAPHS = type(Kinds.INFERENCE_GRAPH);
    private static final Duration SWEEP = Duration.ofMinutes(5);
    private static final Duration REWATCH = Duration.ofSeconds(1);

    private final ResourceStore store;
    private final Infrastructure infrastructure;
    private final Clock clock;
    private final Loop loop;
    private final WorkQueue<Item> queue;
    private final CatalogView catalogs;
    private final RevisionStore revisions;
    private final EventRecorder events;
    /** What of each resource was planned last, as far as a plan depends on it. */
    private final Map<Item, JsonNode> seen = new ConcurrentHashMap<>();

    private final Map<Item, Boolean> known = new ConcurrentHashMap<>();
    private final List<ResourceStore.Watch> watches = new ArrayList<>();
    /** What was in the store at the start and has not been worked on yet. */
    private final Set<Item> first = ConcurrentHashMap.newKeySet();

    private final CountDownLatch through = new CountDownLatch(1);
    private volatile boolean closed;

    /** One resource to work on. */
    private record Item(boolean graph, String namespace, String name) {
        ResourceStore.Key key() {
            return new ResourceStore.Key(graph ? GRAPHS : SERVICES, namespace, name);
        }

        @Override
        public String toString() {
            return (graph ? "InferenceGraph " : "InferenceService ") + namespace + "/" + name;
        }
    }

    /** Watches nothing yet; statuses do not tell where the gateway is. */
    public LocalPlane(ResourceStore store, Infrastructure infrastructure, LocalSettings.Retries retries, Clock clock) {
        this(store, infrastructure, retries, () -> Catalog.Gateway.UNKNOWN, ServiceConfig::defaults, clock);
    }

    /**
     * Watches nothing yet.
     *
     * @param retries times after which what failed is tried again
     * @param gateway where clients reach the gateway; asked when the loop has been started
     * @param base the settings where none are stored; likewise
     */
    public LocalPlane(
            ResourceStore store,
            Infrastructure infrastructure,
            LocalSettings.Retries retries,
            Supplier<Catalog.Gateway> gateway,
            Supplier<ServiceConfig> base,
            Clock clock) {
        this(store, infrastructure, retries, gateway, base, Loop.threads(clock));
    }

    LocalPlane(
            ResourceStore store,
            Infrastructure infrastructure,
            LocalSettings.Retries retries,
            Supplier<Catalog.Gateway> gateway,
            Supplier<ServiceConfig> base,
            Loop loop) {
        this.store = store;
        this.infrastructure = infrastructure;
        this.clock = loop.clock();
        this.loop = loop;
        this.queue = new WorkQueue<>(loop, retries, this::work);
        this.catalogs = new CatalogView(gateway, base);
        this.revisions = new RevisionStore(store);
        this.events = new EventRecorder(store, clock);
    }

    private static ResourceStore.Type type(Kind kind) {
        return new ResourceStore.Type(kind.group(), kind.plural());
    }

    /** Begins to watch. Everything in the store is planned and applied soon after. */
    public void start() {
        infrastructure.onChange((namespace, name) -> queue.add(new Item(false, namespace, name)));
        // What services are planned with is known before the first one is.
        watch(type(Kinds.CLUSTER_SERVING_RUNTIME), c -> catalog(CatalogView.Role.CLUSTER_RUNTIME, c));
        watch(type(Kinds.SERVING_RUNTIME), c -> catalog(CatalogView.Role.RUNTIME, c));
        watch(type(Kinds.CLUSTER_STORAGE_CONTAINER), c -> catalog(CatalogView.Role.STORAGE_CONTAINER, c));
        watch(type(Kinds.CONFIG_MAP), c -> {
            if (name(c.resource()).equals(ServiceConfig.CONFIG_MAP)) {
                catalog(CatalogView.Role.CONFIG, c);
            }
        });
        for (ObjectNode service : store.list(SERVICES, null).items()) {
            first.add(new Item(false, namespace(service), name(service)));
        }
        for (ObjectNode graph : store.list(GRAPHS, null).items()) {
            first.add(new Item(true, namespace(graph), name(graph)));
        }
        watch(SERVICES, c -> changed(false, c));
        watch(GRAPHS, c -> changed(true, c));
        watch(type(Kinds.SECRET), c -> retry(namespace(c.resource())));
        watch(type(Kinds.SERVICE_ACCOUNT), c -> retry(namespace(c.resource())));
        if (first.isEmpty()) {
            through.countDown();
        }
        sweep();
    }

    /**
     * Waits until everything that was in the store at the start has been planned and applied once: then services have their
     * routes, and statuses say what is rather than what was when the server ended.
     *
     * @return false when that took longer
     */
    public boolean settled(Duration limit) throws InterruptedException {
        return through.await(limit.toMillis(), TimeUnit.MILLISECONDS);
    }

    private void lookedAt(Item item) {
        if (first.remove(item) && first.isEmpty()) {
            through.countDown();
        }
    }

    private void retry(String namespace) {
        if (infrastructure instanceof LocalInfrastructure local) {
            local.retry(namespace);
        }
    }

    private void sweep() {
        loop.io(() -> {
            try {
                events.sweep();
            } catch (RuntimeException e) {
                LOG.debug("old events stay for now", e);
            }
        });
        Loop.Timer unused = loop.after(SWEEP, () -> {
            if (!closed) {
                sweep();
            }
        });
    }

    // ---- hearing ----

    private synchronized void watch(ResourceStore.Type type, Consumer<Change> listener) {
        if (closed) {
            return;
        }
        // Listed first, so that all of it is known when this returns.
        ResourceStore.Listing listing = store.list(type, null);
        listing.items().forEach(r -> listener.accept(new Change(Change.Kind.ADDED, listing.version(), r)));
        try {
            watches.add(store.watch(type, null, listing.version(), listener));
        } catch (ServingException e) {
            LOG.warn("{} are listed anew: {}", type.plural(), e.describe());
            Loop.Timer unused = loop.after(REWATCH, () -> watch(type, listener));
        }
    }

    private void catalog(CatalogView.Role role, Change change) {
        catalogs.put(role, change.resource(), change.kind() == Change.Kind.DELETED);
        String namespace = namespace(change.resource());
        boolean everywhere = namespace.isEmpty() || namespace.equals(CatalogView.HOME);
        known.keySet().stream()
                .filter(i -> everywhere || i.namespace.equals(namespace))
                .forEach(queue::add);
    }

    private void changed(boolean graph, Change change) {
        ObjectNode resource = change.resource();
        Item item = new Item(graph, namespace(resource), name(resource));
        if (change.kind() == Change.Kind.DELETED) {
            seen.remove(item);
        } else {
            known.put(item, true);
            // Our own statuses need no new plan.
            if (concern(resource).equals(seen.get(item))) {
                return;
            }
        }
        queue.add(item);
    }

    /** Everything of a resource that a plan depends on. */
    private static JsonNode concern(ObjectNode resource) {
        ObjectNode concern = JsonNodeFactory.instance.objectNode();
        concern.set("spec", resource.path("spec"));
        JsonNode metadata = resource.path("metadata");
        for (String field : List.of("uid", "generation", "labels", "annotations", "deletionTimestamp", "finalizers")) {
            if (metadata.has(field)) {
                concern.set(field, metadata.get(field));
            }
        }
        return concern.deepCopy();
    }

    private static String name(ObjectNode resource) {
        return resource.path("metadata").path("name").asText("");
    }

    private static String namespace(ObjectNode resource) {
        return resource.path("metadata").path("namespace").asText("");
    }

    // ---- working ----

    private void work(Item item) {
        if (closed) {
            return;
        }
        try {
            look(item);
        } finally {
            lookedAt(item);
        }
    }

    private void look(Item item) {
        ObjectNode resource = store.get(item.key());
        if (resource == null) {
            infrastructure.apply(item.namespace, item.name, nothing());
            if (!item.graph) {
                revisions.delete(item.namespace, item.name);
            }
            known.remove(item);
            seen.remove(item);
            tellGraphs(item);
            return;
        }
        seen.put(item, concern(resource));
        if (resource.path("metadata").hasNonNull("deletionTimestamp")) {
            end(item, resource);
            return;
        }
        if (!item.graph && !hasFinalizer(resource)) {
            ArrayNode finalizers = resource.withObject("/metadata").withArray("finalizers");
            finalizers.add(FINALIZER);
            resource = updated(item, resource);
            if (resource == null) {
                return;
            }
            seen.put(item, concern(resource));
        }
        plan(item, resource);
    }

    private static Plan nothing() {
        return new Plan(List.of(), null, List.of(), JsonNodeFactory.instance.objectNode(), List.of(), null);
    }

    private static boolean hasFinalizer(ObjectNode resource) {
        for (JsonNode f : resource.path("metadata").path("finalizers")) {
            if (f.asText().equals(FINALIZER)) {
                return true;
            }
        }
        return false;
    }

    private void end(Item item, ObjectNode resource) {
        infrastructure.apply(item.namespace, item.name, nothing());
        if (!hasFinalizer(resource)) {
            return;
        }
        if (infrastructure.observe(item.namespace, item.name).isEmpty()) {
            ArrayNode kept = JsonNodeFactory.instance.arrayNode();
            resource.path("metadata").path("finalizers").forEach(f -> {
                if (!f.asText().equals(FINALIZER)) {
                    kept.add(f);
                }
            });
            resource.withObject("/metadata").set("finalizers", kept);
            ObjectNode unused = updated(item, resource);
            if (kept.isEmpty()) {
                revisions.delete(item.namespace, item.name);
            }
            queue.add(item);
        }
        // Else the infrastructure tells when something has ended.
    }

    /** Writes a resource; null when there is a newer one, which is then worked on. */
    private @Nullable ObjectNode updated(Item item, ObjectNode resource) {
        try {
            return store.update(
                    item.key().type(),
                    resource,
                    resource.path("metadata").path("resourceVersion").asText());
        } catch (ServingException e) {
            if (e.code() == ErrorCode.ABORTED || e.code() == ErrorCode.NOT_FOUND) {
                queue.add(item);
                return null;
            }
            throw e;
        }
    }

    private void plan(Item item, ObjectNode resource) {
        Instant now = Instant.ofEpochMilli(clock.millis());
        Catalog catalog = catalogs.of(item.namespace);
        String uid = resource.path("metadata").path("uid").asText();
        JsonNode status =
                resource.path("status").isObject() ? resource.path("status") : JsonNodeFactory.instance.objectNode();
        List<Revision> before = item.graph ? List.of() : revisions.read(item.namespace, item.name, uid);
        Observed observed = new Observed(infrastructure.observe(item.namespace, item.name), before, status);
        Plan plan = item.graph
                ? Planner.planGraph(
                        InferenceGraph.read(resource), name -> service(item.namespace, name), catalog, observed, now)
                : Planner.plan(InferenceService.read(resource), catalog, observed, now);
        if (!item.graph && !plan.revisions().equals(before)) {
            // Kept before they run: a revision's name is never given twice.
            revisions.write(item.namespace, item.name, uid, plan.revisions());
        }
        infrastructure.apply(item.namespace, item.name, plan);
        if (!plan.status().equals(status)) {
            resource.set("status", plan.status());
            ObjectNode written = updated(item, resource);
            if (written == null) {
                return;
            }
            tellGraphs(item);
        }
        for (Plan.Event event : plan.events()) {
            events.record(resource, event);
        }
        if (plan.requeueAfter() != null) {
            queue.addAfter(item, plan.requeueAfter());
        }
    }

    private @Nullable InferenceService service(String namespace, String name) {
        ObjectNode tree = store.get(new ResourceStore.Key(SERVICES, namespace, name));
        return tree == null ? null : InferenceService.read(tree);
    }

    /** Graphs are made of services of their namespace. */
    private void tellGraphs(Item item) {
        if (!item.graph) {
            known.keySet().stream()
                    .filter(i -> i.graph && i.namespace.equals(item.namespace))
                    .forEach(queue::add);
        }
    }

    /** Stops planning; what runs goes on until the infrastructure is closed. */
    @Override
    public synchronized void close() {
        closed = true;
        watches.forEach(ResourceStore.Watch::close);
        watches.clear();
        queue.close();
        loop.close();
    }
}
