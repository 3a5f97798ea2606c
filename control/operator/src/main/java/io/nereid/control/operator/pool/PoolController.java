// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.pool;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.api.Quantity;
import io.nereid.control.api.ResourceKinds;
import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.core.ObservedState.Phase;
import io.nereid.control.core.ObservedState.Traffic;
import io.nereid.control.core.Workload;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.gateway.activator.WakeListener;
import io.nereid.control.kubernetes.cluster.Owner;
import io.nereid.control.kubernetes.cluster.Trees;
import io.nereid.control.kubernetes.pod.PodNames;
import io.nereid.control.kubernetes.pool.PoolObjects;
import io.nereid.control.kubernetes.pool.PoolObjects.Holder;
import io.nereid.control.kubernetes.pool.SharedForms;
import io.nereid.control.kubernetes.pool.SharedForms.SharedModel;
import io.nereid.control.kubernetes.revision.RevisionPlanner;
import io.nereid.control.operator.cluster.ClusterClient;
import io.nereid.control.operator.cluster.ClusterKinds;
import io.nereid.control.operator.cluster.ObjectCache;
import io.nereid.control.operator.objects.ObjectTrimmer;
import io.nereid.control.operator.revision.LoadSource;
import io.nereid.control.operator.revision.SharedModels;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * All pools of a cluster: makes their objects, follows their pods, and gives them the services, the load and the time. A
 * pool exists as long as it has services. Thread-safe; the pools are confined to one thread of this object.
 *
 * <pre>{@code
 * PoolController pools = new PoolController(client, Set.of(), "nereid", load, Clock.system());
 * pools.onChange((namespace, service) -> reconcile(namespace, service));
 * pools.start(Duration.ofMinutes(2));
 * pools.configure(owner, workloads, ready);
 * WorkloadState state = pools.state("default", "iris");
 * }</pre>
 */
public final class PoolController implements SharedModels, WakeListener, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(PoolController.class);
    private static final WorkloadState NOTHING = new WorkloadState(Phase.PENDING, 0, 1, null, Traffic.NONE);

    /** The share of a pod's memory that models may take; the rest is for requests and for loading. */
    private static final double MODELS = 0.6;

    private static final long DEFAULT_MEMORY = 2L << 30;
    private static final int PODS_EVERY = 5;
    private static final String MODEL_KIND = "TrainedModel";
    private static final String NAME_TAKEN = "ModelNameTaken";

    private final ClusterClient client;
    private final LoadSource load;
    private final Clock clock;
    private final PoolKeys keys;
    private final ObjectCache slices;
    private final HttpPoolServers servers;
    private final EndpointTables tables;
    private final ScheduledThreadPoolExecutor owner = Threads.timer("nereid-pools");
    private final ScheduledThreadPoolExecutor writer = Threads.timer("nereid-pool-objects");
    private volatile BiConsumer<String, String> listener = (namespace, service) -> {};
    private volatile BiConsumer<String, String> modelListener = (namespace, service) -> {};

    /** Confined to {@link #owner}. */
    private final Map<String, Running> pools = new HashMap<>();

    /** The pool of each service, by namespace and name; confined to {@link #owner}. */
    private final Map<String, String> placed = new HashMap<>();

    private final Map<String, PooledService> states = new ConcurrentHashMap<>();

    /** The services whose models are TrainedModels, by namespace and name. */
    private final Map<String, PooledParent> parents = new ConcurrentHashMap<>();

    /** Models that are not placed since the pool has another model of their name, by the key of {@link #placed}; confined to {@link #owner}. */
    private final Map<String, PooledService> nameConflicts = new HashMap<>();

    /** The key of {@link #placed} of each TrainedModel, by namespace and revision. */
    private final Map<String, String> keyOfRevision = new ConcurrentHashMap<>();

    /** The services that were configured and not forgotten, also those that the owner has not taken up yet. */
    private final Set<String> configured = ConcurrentHashMap.newKeySet();

    /** The keys of pods by their addresses, as the pods of a pool are known. */
    private final Map<String, String> keyOfPod = new ConcurrentHashMap<>();

    private int ticks;

    /** A pool with its objects. */
    private static final class Running {
        final String namespace;
        final String name;
        final ModelPool pool;
        JsonNode pod;
        int replicas;
        boolean known;

        @Nullable String applied;

        Running(String namespace, String name, ModelPool pool, JsonNode pod) {
            this.namespace = namespace;
            this.name = name;
            this.pool = pool;
            this.pod = pod;
        }
    }

    /**
     * Creates the controller, which does nothing before {@link #start}.
     *
     * @param watchNamespaces the namespaces of services; empty for all
     * @param namespace the operator's own
     */
    public PoolController(
            ClusterClient client, Set<String> watchNamespaces, String namespace, LoadSource load, Clock clock) {
        this.client = client;
        this.load = load;
        this.clock = clock;
        this.keys = new PoolKeys(client, namespace);
        this.slices = new ObjectCache(
                client, ClusterKinds.ENDPOINT_SLICE, watchNamespaces, PoolObjects.OF_POOL, ObjectTrimmer::resource);
        this.servers = new HttpPoolServers(pod -> keyOfPod.getOrDefault(pod.uid(), ""));
        this.tables = new EndpointTables(client, load);
    }

    @Override
    public void onChange(BiConsumer<String, String> changes) {
        listener = changes;
    }

    /**
     * Starts to follow the pods. Blocks until they are known.
     *
     * @throws ServingException UNAVAILABLE when that takes longer than the limit, PERMISSION_DENIED
     */
    public void start(Duration limit) {
        AutoCloseable unused = slices.listen((change, slice) -> {
            String namespace = slice.path("metadata").path("namespace").asText();
            String pool = slice.path("metadata")
                    .path("labels")
                    .path(PoolObjects.OF_POOL)
                    .asText();
            execute(() -> look(namespace, pool));
        });
        slices.start(limit);
        Object unusedTimer = owner.scheduleWithFixedDelay(this::tick, 1, 1, TimeUnit.SECONDS);
    }

    private void execute(Runnable task) {
        try {
            owner.execute(() -> {
                try {
                    task.run();
                } catch (RuntimeException e) {
                    LOG.error("a pool could not take up a change", e);
                }
            });
        } catch (RejectedExecutionException e) {
            LOG.debug("a change of pools is not taken up: the operator ends");
        }
    }

    // ---- services ----

    @Override
    public void configure(Owner service, List<Workload> workloads, String ready) {
        Set<String> revisions = new HashSet<>();
        SharedModel model = null;
        Workload predictor = null;
        for (Workload workload : workloads) {
            SharedModel one = SharedForms.model(workload);
            if (one != null) {
                revisions.add(workload.revision());
                model = one;
                predictor = workload;
            }
        }
        String key = key(service.namespace(), service.name());
        if (model == null || predictor == null) {
            forget(service.namespace(), service.name());
            return;
        }
        boolean proven = revisions.contains(ready);
        if (model.uri().isEmpty()) {
            remove(key, service.name());
            PooledParent before = parents.get(key);
            PooledParent next =
                    new PooledParent(service, predictor, model, proven || before != null && before.isProven());
            parents.put(key, next);
            execute(() -> look(next, running(service.namespace(), next.model)));
            if (before == null || !before.workload.equals(predictor)) {
                modelListener.accept(service.namespace(), service.name());
            }
            return;
        }
        parents.remove(key);
        configured.add(key);
        PooledService next = new PooledService(service, revisions, model);
        next.proven = proven;
        execute(() -> put(key, next));
    }

    private Running running(String namespace, SharedModel model) {
        String of = key(namespace, model.pool());
        Running running = pools.get(of);
        if (running == null) {
            running = open(namespace, model);
            pools.put(of, running);
        }
        if (!running.pod.equals(model.pod())) {
            running.pod = model.pod();
            write(running);
        }
        return running;
    }

    private void put(String key, PooledService next) {
        if (!configured.contains(key)) {
            return;
        }
        String of = key(next.owner.namespace(), next.model.pool());
        PooledService known = states.get(key);
        String before = placed.get(key);
        if (before != null && !before.equals(of)) {
            leave(key, next.name());
        }
        Running running = running(next.owner.namespace(), next.model);
        PooledService other = running.pool.service(next.name());
        if (other != null && !other.owner.kind().equals(next.owner.kind())) {
            reportNameConflict(key, next, other, known);
            return;
        }
        if (nameConflicts.remove(key) != null) {
            next.failure = null;
        }
        placed.put(key, of);
        next.proven |= known != null && known.proven;
        running.pool.put(next);
        PooledService now = running.pool.service(next.name());
        if (now != null) {
            states.put(key, now);
        }
    }

    /** A pod serves one model of a name: the later one is placed when the earlier one has been removed from the pool. */
    private void reportNameConflict(
            String key, PooledService next, PooledService other, @Nullable PooledService known) {
        Failure before = known == null ? null : known.failure;
        WorkloadState was = known == null ? NOTHING : known.state();
        next.failure = before != null && before.reason().equals(NAME_TAKEN)
                ? before
                : new Failure(
                        NAME_TAKEN,
                        "the pool '" + next.model.pool() + "' has a model '" + next.name() + "' already, of the "
                                + other.owner.kind() + " of this name; delete one of them, and create it under another"
                                + " name",
                        Instant.ofEpochMilli(clock.millis()),
                        null);
        boolean unused = next.update(0);
        nameConflicts.put(key, next);
        states.put(key, next);
        if (!was.equals(next.state())) {
            changed(next);
        }
    }

    /** Removes what has a key from its pool. */
    private void leave(String key, String name) {
        String of = placed.remove(key);
        Running running = of == null ? null : pools.get(of);
        if (running != null) {
            running.pool.remove(name);
        }
    }

    private void changed(PooledService service) {
        (service.owner.kind().equals(MODEL_KIND) ? modelListener : listener)
                .accept(service.owner.namespace(), service.service);
    }

    @Override
    public void forget(String namespace, String service) {
        parents.remove(key(namespace, service));
        remove(key(namespace, service), service);
    }

    private void remove(String key, String name) {
        if (!configured.remove(key)) {
            return;
        }
        execute(() -> {
            if (configured.contains(key)) {
                return; // configured again since
            }
            states.remove(key);
            nameConflicts.remove(key);
            leave(key, name);
        });
    }

    @Override
    public WorkloadState state(String namespace, String service) {
        String key = key(namespace, service);
        PooledParent parent = parents.get(key);
        if (parent != null) {
            return parent.state();
        }
        PooledService known = states.get(key);
        return known == null ? NOTHING : known.state();
    }

    private static String key(String namespace, String name) {
        return namespace + "/" + name;
    }

    // ---- TrainedModels ----

    /** Its key: services and TrainedModels of one name are different ones. */
    private static String modelKey(String namespace, String model) {
        return namespace + "/" + MODEL_KIND + "/" + model;
    }

    @Override
    public void onModelChange(BiConsumer<String, String> changes) {
        modelListener = changes;
    }

    @Override
    public @Nullable Workload parent(String namespace, String service) {
        PooledParent parent = parents.get(key(namespace, service));
        return parent == null ? null : parent.workload;
    }

    @Override
    public void configureModel(Owner model, String service, SharedModel shared, boolean proven) {
        String key = modelKey(model.namespace(), model.name());
        String revision = PoolObjects.modelRevision(model.name());
        configured.add(key);
        keyOfRevision.put(key(model.namespace(), revision), key);
        PooledService next = new PooledService(model, service, Set.of(revision), shared);
        next.proven = proven;
        boolean unused = next.update(0);
        PooledService unusedToo = states.putIfAbsent(key, next);
        execute(() -> put(key, next));
    }

    @Override
    public void forgetModel(String namespace, String model) {
        String key = modelKey(namespace, model);
        keyOfRevision.remove(key(namespace, PoolObjects.modelRevision(model)));
        remove(key, model);
    }

    @Override
    public WorkloadState modelState(String namespace, String model) {
        PooledService known = states.get(modelKey(namespace, model));
        return known == null ? NOTHING : known.state();
    }

    /** Takes the state of a service without a model from its pool. */
    private void look(PooledParent parent, Running running) {
        if (parent.update(running.pool.ready())) {
            listener.accept(parent.service.namespace(), parent.service.name());
        }
    }

    private boolean lookAtParents(Running running) {
        boolean any = false;
        for (PooledParent parent : parents.values()) {
            if (parent.isOf(running.namespace, running.name)) {
                any = true;
                look(parent, running);
            }
        }
        return any;
    }

    /** A request waits for a model that no pod has. */
    @Override
    public void wake(String namespace, String revision) {
        String base = RevisionPlanner.base(revision);
        String service = base.endsWith("-predictor") ? base.substring(0, base.length() - "-predictor".length()) : base;
        String key = keyOfRevision.getOrDefault(key(namespace, revision), key(namespace, service));
        PooledService known = states.get(key);
        if (known == null) {
            return;
        }
        execute(() -> {
            String of = placed.get(key);
            Running running = of == null ? null : pools.get(of);
            if (running != null) {
                running.pool.wake(known.name());
            }
        });
    }

    // ---- pools ----

    private Running open(String namespace, SharedModel model) {
        ModelPool pool =
                new ModelPool(key(namespace, model.pool()), size(model), servers, tables, owner, clock, this::changed);
        Running running = new Running(namespace, model.pool(), pool, model.pod());
        running.replicas = model.min();
        write(running);
        return running;
    }

    private static PoolSize size(SharedModel model) {
        ObjectNode main = Trees.named(model.pod().path("containers"), PodNames.MAIN);
        JsonNode limits = main == null
                ? model.pod().path("limits")
                : main.path("resources").path("limits");
        String memory = limits.path("memory").asText("");
        String cpu = limits.path("cpu").asText("");
        long bytes = memory.isEmpty() ? DEFAULT_MEMORY : Quantity.parse(memory).units();
        int workers = cpu.isEmpty()
                ? 1
                : (int) Math.max(1, Math.ceil(Quantity.parse(cpu).amount()));
        return new PoolSize((long) (MODELS * bytes), workers, model.min(), model.max());
    }

    /** Writes the objects of a pool, if they are not as they shall be; on a thread of its own. */
    private void write(Running running) {
        JsonNode pod = running.pod;
        int replicas = running.replicas;
        boolean first = !running.known;
        try {
            writer.execute(() -> {
                try {
                    int wanted = first ? existing(running, replicas) : replicas;
                    PoolKeys.Key key = keys.of(running.namespace, running.name);
                    ObjectNode deployment = PoolObjects.deployment(running.namespace, running.name, pod, wanted);
                    Object unusedMap = client.apply(
                            ResourceKinds.CONFIG_MAP,
                            PoolObjects.access(running.namespace, running.name, key.id(), key.sha256()));
                    Object unusedService =
                            client.apply(ClusterKinds.SERVICE, PoolObjects.service(running.namespace, running.name));
                    Object unusedStored = client.apply(ClusterKinds.DEPLOYMENT, deployment);
                    execute(() -> {
                        running.known = true;
                        running.applied = deployment.toString();
                        running.replicas = first ? wanted : running.replicas;
                        look(running.namespace, running.name);
                    });
                } catch (RuntimeException e) {
                    LOG.warn(
                            "pool {}/{}: its objects are not written: {}",
                            running.namespace,
                            running.name,
                            ServingException.from(e).describe());
                    execute(() -> running.applied = null);
                }
            });
        } catch (RejectedExecutionException e) {
            LOG.debug("the objects of a pool are not written: the operator ends");
        }
    }

    /** The pods that a pool of a former operator has. */
    private int existing(Running running, int otherwise) {
        ObjectNode there = client.get(ClusterKinds.DEPLOYMENT, running.namespace, running.name);
        return there == null
                ? otherwise
                : Math.max(otherwise, there.path("spec").path("replicas").asInt(otherwise));
    }

    /** Gives a pool the pods that the slices have. */
    private void look(String namespace, String name) {
        Running running = pools.get(key(namespace, name));
        if (running == null || !running.known) {
            return;
        }
        String key = keys.of(namespace, name).text();
        List<ObjectNode> own = new ArrayList<>();
        for (ObjectNode slice : slices.all()) {
            JsonNode metadata = slice.path("metadata");
            if (metadata.path("namespace").asText().equals(namespace)
                    && metadata.path("labels")
                            .path(PoolObjects.OF_POOL)
                            .asText()
                            .equals(name)) {
                own.add(slice);
            }
        }
        List<PoolPod> pods = PoolPod.read(own);
        for (PoolPod pod : pods) {
            Holder holder = pod.holder();
            keyOfPod.put(holder.uid(), key);
        }
        running.pool.pods(pods);
    }

    private void tick() {
        try {
            ticks++;
            if (ticks % PODS_EVERY == 0) {
                Map.copyOf(nameConflicts).forEach(this::put);
            }
            for (Running running : List.copyOf(pools.values())) {
                if (!lookAtParents(running) && running.pool.isEmpty()) {
                    pools.remove(key(running.namespace, running.name));
                    remove(running);
                    continue;
                }
                if (!running.known || running.applied == null) {
                    if (ticks % PODS_EVERY == 0) {
                        write(running);
                    }
                    continue;
                }
                if (ticks % PODS_EVERY == 0) {
                    look(running.namespace, running.name);
                }
                running.pool.tick((service, revision) -> load.load(running.namespace, revision));
                int desired = running.pool.desired(running.replicas);
                if (desired != running.replicas) {
                    LOG.info(
                            "pool {}/{}: {} pods instead of {}",
                            running.namespace,
                            running.name,
                            desired,
                            running.replicas);
                    running.replicas = desired;
                    write(running);
                }
            }
        } catch (RuntimeException e) {
            LOG.error("the pools could not be looked at", e);
        }
    }

    private void remove(Running running) {
        LOG.info("pool {}/{} has no services any more", running.namespace, running.name);
        writer.execute(() -> {
            try {
                client.delete(ClusterKinds.DEPLOYMENT, running.namespace, running.name, null);
                client.delete(ClusterKinds.SERVICE, running.namespace, running.name, null);
                client.delete(ResourceKinds.CONFIG_MAP, running.namespace, running.name, null);
            } catch (RuntimeException e) {
                LOG.warn(
                        "pool {}/{}: its objects are not deleted: {}",
                        running.namespace,
                        running.name,
                        ServingException.from(e).describe());
            }
        });
    }

    @Override
    public void close() {
        slices.close();
        owner.shutdownNow();
        writer.shutdownNow();
        tables.close();
        servers.close();
    }
}
