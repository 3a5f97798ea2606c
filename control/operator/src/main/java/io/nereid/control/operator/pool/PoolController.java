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

    /** Confined to {@link #owner}. */
    private final Map<String, Running> pools = new HashMap<>();

    /** The pool of each service, by namespace and name; confined to {@link #owner}. */
    private final Map<String, String> placed = new HashMap<>();

    private final Map<String, PooledService> states = new ConcurrentHashMap<>();

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
        for (Workload workload : workloads) {
            SharedModel one = SharedForms.model(workload);
            if (one != null) {
                revisions.add(workload.revision());
                model = one;
            }
        }
        SharedModel placedModel = model;
        if (placedModel == null) {
            forget(service.namespace(), service.name());
            return;
        }
        configured.add(key(service.namespace(), service.name()));
        execute(() -> put(service, revisions, placedModel, revisions.contains(ready)));
    }

    private void put(Owner service, Set<String> revisions, SharedModel model, boolean proven) {
        String key = key(service.namespace(), service.name());
        String of = key(service.namespace(), model.pool());
        String before = placed.put(key, of);
        if (before != null && !before.equals(of)) {
            Running former = pools.get(before);
            if (former != null) {
                former.pool.remove(service.name());
            }
        }
        Running running = pools.get(of);
        if (running == null) {
            running = open(service.namespace(), model);
            pools.put(of, running);
        }
        if (!running.pod.equals(model.pod())) {
            running.pod = model.pod();
            write(running);
        }
        PooledService known = states.get(key);
        PooledService next = new PooledService(service, revisions, model);
        next.proven = proven || known != null && known.proven;
        running.pool.put(next);
        for (PooledService one : running.pool.services()) {
            if (one.name().equals(service.name())) {
                states.put(key, one);
            }
        }
    }

    @Override
    public void forget(String namespace, String service) {
        String key = key(namespace, service);
        if (!configured.remove(key)) {
            return;
        }
        execute(() -> {
            states.remove(key);
            String of = placed.remove(key);
            Running running = of == null ? null : pools.get(of);
            if (running != null) {
                running.pool.remove(service);
            }
        });
    }

    @Override
    public WorkloadState state(String namespace, String service) {
        PooledService known = states.get(key(namespace, service));
        return known == null ? NOTHING : known.state();
    }

    private static String key(String namespace, String name) {
        return namespace + "/" + name;
    }

    /** A request waits for a model that no pod has. */
    @Override
    public void wake(String namespace, String revision) {
        String base = RevisionPlanner.base(revision);
        String service = base.endsWith("-predictor") ? base.substring(0, base.length() - "-predictor".length()) : base;
        if (!states.containsKey(key(namespace, service))) {
            return;
        }
        execute(() -> {
            String of = placed.get(key(namespace, service));
            Running running = of == null ? null : pools.get(of);
            if (running != null) {
                running.pool.wake(service);
            }
        });
    }

    // ---- pools ----

    private Running open(String namespace, SharedModel model) {
        ModelPool pool = new ModelPool(
                key(namespace, model.pool()),
                size(model),
                servers,
                tables,
                owner,
                clock,
                service -> listener.accept(namespace, service.name()));
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
            for (Running running : List.copyOf(pools.values())) {
                if (running.pool.isEmpty()) {
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
