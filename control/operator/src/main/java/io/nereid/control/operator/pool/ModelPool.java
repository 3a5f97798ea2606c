// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.operator.pool;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.kubernetes.pool.PoolObjects.Holder;
import io.nereid.control.operator.gateway.RevisionLoad;
import io.nereid.control.operator.revision.SharedModels;
import io.nereid.control.placement.PlacementAction;
import io.nereid.control.placement.PlacementSettings;
import io.nereid.control.placement.PoolPlacement;
import io.nereid.control.placement.PoolScaler;
import io.nereid.control.placement.PooledModel;
import io.nereid.control.placement.PooledPod;
import io.nereid.control.placement.WorkingSet;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.function.BiFunction;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * One pool: the services and pods that it has, and what is under way. It carries out what {@link PoolPlacement} decides. A
 * pod is in the table of a model only while it has the model: it is added after the load, and before an unload it is
 * removed and the gateways have followed. Confined to one thread, its owner, on which the ends of calls are reported.
 */
final class ModelPool {
    private static final Logger LOG = LoggerFactory.getLogger(ModelPool.class);
    private static final Duration RETRY = Duration.ofMinutes(1);
    private static final int LOAD_SLOTS = 2;
    private static final double HIT_RATE = 0.99;

    /** How long after the start what pods have is not taken for left over: services are read one after the other. */
    private static final Duration SETTLED = Duration.ofSeconds(60);

    private final String pool;
    private final PoolSize size;
    private final PoolServers servers;
    private final PoolTables tables;
    private final Executor owner;
    private final Clock clock;
    private final Consumer<PooledService> changes;
    private final PoolPlacement placement = new PoolPlacement(PlacementSettings.DEFAULT);
    private final PoolScaler scaler;
    private final Map<String, PooledService> services = new LinkedHashMap<>();

    /** Services that are gone, whose models are still being unloaded. */
    private final Map<String, PooledService> leaving = new HashMap<>();

    /** Pods that have joined or are asked what they have, by name. */
    private final Map<String, Holder> pods = new TreeMap<>();

    /** Models that a pod had when it joined and that no service has asked for so far, by pod. */
    private final Map<String, Set<String>> held = new HashMap<>();

    private final Set<String> draining = new HashSet<>();

    /** Models that shall be loaded and are not. */
    private final Set<String> wanted = new LinkedHashSet<>();

    private final long startedAt;
    private boolean settled;
    private boolean scarce;

    /** @param changes is called for a service whose state has changed */
    ModelPool(
            String pool,
            PoolSize size,
            PoolServers servers,
            PoolTables tables,
            Executor owner,
            Clock clock,
            Consumer<PooledService> changes) {
        this.pool = pool;
        this.size = size;
        this.servers = servers;
        this.tables = tables;
        this.owner = owner;
        this.clock = clock;
        this.changes = changes;
        this.startedAt = clock.nanos();
        this.scaler = new PoolScaler(size.scaling());
    }

    boolean isEmpty() {
        return services.isEmpty() && leaving.isEmpty();
    }

    /** The number of pods that serve. */
    int ready() {
        return placement.pods().size();
    }

    /** The service whose model has this name in the pods; null for none. */
    @Nullable PooledService service(String model) {
        return services.get(model);
    }

    // ---- services ----

    /** Adds a service, or takes over what has changed of it. */
    void put(PooledService service) {
        long now = clock.nanos();
        PooledService before = services.get(service.name());
        if (before != null && isSame(before, service)) {
            Set<String> more = new HashSet<>(service.revisions);
            more.removeAll(before.revisions);
            boolean moved = !before.model.uri().equals(service.model.uri());
            before.revisions = service.revisions;
            before.model = service.model;
            if (!more.isEmpty() && !placement.table().pods(service.name()).isEmpty()) {
                publish(before);
            }
            if (moved) {
                before.failure = null;
                List<String> holders = placement.table().pods(service.name());
                holders.forEach(pod -> reload(before, pod));
                if (holders.isEmpty()) {
                    before.proven = false;
                    wanted.add(before.name());
                }
                run(now);
            }
            update(before);
            return;
        }
        if (before != null) {
            remove(service.name());
        }
        leaving.remove(service.name());
        services.put(service.name(), service);
        try {
            placement.add(new PooledModel(service.name(), service.model.bytes(), service.model.pinned()), now);
        } catch (ServingException e) {
            // A pinned model that fits nowhere now is loaded as soon as it does.
            service.waiting = failure(SharedModels.WAITS, waits(e));
            placement.add(new PooledModel(service.name(), service.model.bytes(), false), now);
        }
        held.forEach((pod, names) -> {
            if (names.remove(service.name())) {
                adopt(service, pod);
            }
        });
        if (!service.proven || service.model.pinned()) {
            wanted.add(service.name());
        }
        run(now);
        update(service);
    }

    private static boolean isSame(PooledService one, PooledService other) {
        boolean owned = one.owner.equals(other.owner) && one.service.equals(other.service);
        return owned && one.model.bytes() == other.model.bytes() && one.model.pinned() == other.model.pinned();
    }

    /** Removes a service: its model is unloaded once the gateways send it no more requests. */
    void remove(String name) {
        PooledService service = services.remove(name);
        if (service != null) {
            leaving.put(name, service);
            wanted.remove(name);
            placement.remove(name, clock.nanos());
            run(clock.nanos());
        }
    }

    /** Requests wait for a model that the gateways know of no pod for. */
    void wake(String name) {
        PooledService service = services.get(name);
        if (service == null) {
            return;
        }
        if (!placement.table().pods(name).isEmpty()) {
            // The gateways have not seen the table, or it was changed.
            publish(service);
            return;
        }
        if (service.failure == null) {
            wanted.add(name);
            run(clock.nanos());
        }
    }

    // ---- pods ----

    /** Takes the pods that there are. */
    void pods(List<PoolPod> all) {
        long now = clock.nanos();
        Set<String> there = new HashSet<>();
        for (PoolPod pod : all) {
            Holder holder = pod.holder();
            Holder known = pods.get(holder.name());
            boolean up = pod.ready() || pod.ending() && pod.serving();
            if (!up) {
                continue;
            }
            if (known != null && !known.equals(holder)) {
                lost(known.name(), now);
                known = null;
            }
            there.add(holder.name());
            if (known == null && !pod.ending()) {
                pods.put(holder.name(), holder);
                look(holder);
            } else if (known != null && pod.ending() && draining.add(holder.name())) {
                LOG.info("pool {}: pod {} ends, its models move", pool, holder.name());
                placement.drain(holder.name(), now);
            }
        }
        for (String name : List.copyOf(pods.keySet())) {
            if (!there.contains(name)) {
                lost(name, now);
            }
        }
        run(now);
    }

    /** Finds out what a new pod has, after which it joins. */
    private void look(Holder holder) {
        servers.loaded(holder)
                .whenCompleteAsync(
                        (names, failure) -> {
                            if (!holder.equals(pods.get(holder.name()))) {
                                return;
                            }
                            if (failure != null) {
                                LOG.warn(
                                        "pool {}: pod {} does not say what it has: {}",
                                        pool,
                                        holder.name(),
                                        reason(failure).describe());
                                // The next change of the pods, or the next tick, brings it again.
                                pods.remove(holder.name());
                                return;
                            }
                            join(holder, names);
                        },
                        owner);
    }

    private void join(Holder holder, Set<String> names) {
        long now = clock.nanos();
        LOG.info("pool {}: pod {} joins with {} models", pool, holder.name(), names.size());
        placement.join(new PooledPod(holder.name(), size.memoryBytes(), size.workers(), LOAD_SLOTS), now);
        Set<String> unknown = new HashSet<>();
        for (String name : names) {
            PooledService service = services.get(name);
            if (service == null) {
                unknown.add(name);
            } else {
                adopt(service, holder.name());
            }
        }
        held.put(holder.name(), unknown);
        run(now);
    }

    private void adopt(PooledService service, String pod) {
        if (placement.adopt(service.name(), pod, clock.nanos())) {
            load(service, pod);
        } else {
            unload(service.name(), pod);
        }
    }

    private void lost(String name, long now) {
        LOG.info("pool {}: pod {} is gone", pool, name);
        List<PooledService> affected = new ArrayList<>();
        for (PooledService service : services.values()) {
            if (placement.table().pods(service.name()).contains(name)) {
                affected.add(service);
            }
        }
        pods.remove(name);
        held.remove(name);
        draining.remove(name);
        placement.lost(name, now);
        if (placement.pods().isEmpty()) {
            // No pod can take them now: those in use are loaded by the next one that comes, the most used first.
            affected.stream()
                    .filter(service -> service.used
                            && now - service.usedAt
                                    <= PlacementSettings.DEFAULT.inUse().toNanos())
                    .sorted(Comparator.comparingDouble((PooledService service) -> -service.rate))
                    .forEach(service -> wanted.add(service.name()));
        }
        affected.forEach(service -> {
            publish(service);
            update(service);
        });
    }

    // ---- actions ----

    private void run(long now) {
        scarce = false;
        for (String name : List.copyOf(wanted)) {
            PooledService service = services.get(name);
            if (service == null || !placement.table().pods(name).isEmpty()) {
                wanted.remove(name);
                continue;
            }
            try {
                String unused = placement.request(name, now);
                service.waiting = null;
            } catch (ServingException e) {
                boolean none = placement.pods().isEmpty();
                scarce |= !none;
                Failure why = none ? null : failure(SharedModels.WAITS, waits(e));
                Failure before = service.waiting;
                service.waiting =
                        why != null && before != null && why.message().equals(before.message()) ? before : why;
                update(service);
            }
        }
        for (PlacementAction action : placement.actions(now)) {
            PooledService service = services.get(action.model());
            if (action.kind() == PlacementAction.Kind.LOAD) {
                if (service != null) {
                    load(service, action.pod());
                }
            } else {
                unload(action.model(), action.pod());
            }
        }
        leaving.values().removeIf(service -> service.loading == 0 && service.unloading == 0);
    }

    /** What a call has failed with, which a stage wraps. */
    private static ServingException reason(Throwable failure) {
        return ServingException.from(
                failure instanceof CompletionException && failure.getCause() != null ? failure.getCause() : failure);
    }

    private static String waits(ServingException refusal) {
        return "the model waits for memory of its pool: " + refusal.getMessage();
    }

    private Failure failure(String reason, String message) {
        return new Failure(reason, message, Instant.ofEpochMilli(clock.millis()), null);
    }

    private void load(PooledService service, String pod) {
        Holder holder = pods.get(pod);
        if (holder == null) {
            placement.loadFailed(service.name(), pod, clock.nanos());
            return;
        }
        service.loading++;
        update(service);
        String uri = service.model.uri();
        servers.load(holder, service.name(), uri)
                .whenCompleteAsync((done, failure) -> loaded(service, holder, uri, failure), owner);
    }

    private void loaded(PooledService service, Holder holder, String uri, @Nullable Throwable problem) {
        long now = clock.nanos();
        String name = service.name();
        service.loading--;
        boolean there = holder.equals(pods.get(holder.name()));
        if (problem == null && there) {
            placement.loaded(name, holder.name(), service.model.bytes(), now);
            if (services.get(name) == service) {
                service.proven = true;
                service.failure = null;
                service.waiting = null;
                wanted.remove(name);
                publish(service);
                if (!uri.equals(service.model.uri())) {
                    reload(service, holder.name());
                }
            }
        } else if (there) {
            ServingException why = reason(problem == null ? new IllegalStateException() : problem);
            placement.loadFailed(name, holder.name(), now);
            LOG.warn("pool {}: model {} on pod {}: {}", pool, name, holder.name(), why.describe());
            failed(service, why, now);
        }
        run(now);
        update(service);
    }

    private void failed(PooledService service, ServingException why, long now) {
        if (why.code() == ErrorCode.UNAVAILABLE) {
            wanted.add(service.name()); // the pod, or the store, is away
        } else {
            wanted.remove(service.name());
            service.failure = failure("ModelLoadFailed", why.getMessage() == null ? why.describe() : why.getMessage());
        }
        service.retryAt = now + RETRY.toNanos();
    }

    /** Another storage URI: loaded in the place of the model, which serves until then. */
    private void reload(PooledService service, String pod) {
        Holder holder = pods.get(pod);
        if (holder == null) {
            return;
        }
        String uri = service.model.uri();
        servers.load(holder, service.name(), uri)
                .whenCompleteAsync(
                        (done, failure) -> {
                            if (failure == null) {
                                if (uri.equals(service.model.uri())) {
                                    service.failure = null;
                                }
                            } else if (uri.equals(service.model.uri())) {
                                failed(service, reason(failure), clock.nanos());
                            }
                            update(service);
                        },
                        owner);
    }

    private void unload(String model, String pod) {
        PooledService service = services.getOrDefault(model, leaving.get(model));
        Holder holder = pods.get(pod);
        if (holder == null) {
            return;
        }
        if (service == null) {
            end(model, holder, null);
            return;
        }
        service.unloading++;
        update(service);
        tables.publish(service, holders(service), true)
                .whenCompleteAsync(
                        (done, failure) -> {
                            if (failure != null && holder.equals(pods.get(pod))) {
                                LOG.warn(
                                        "pool {}: model {} stays on pod {}: {}",
                                        pool,
                                        model,
                                        pod,
                                        reason(failure).describe());
                                service.unloading--;
                                unload(model, pod);
                            } else {
                                end(model, holder, service);
                            }
                        },
                        owner);
    }

    private void end(String model, Holder holder, @Nullable PooledService service) {
        servers.unload(holder, model)
                .whenCompleteAsync(
                        (done, failure) -> {
                            if (failure != null && holder.equals(pods.get(holder.name()))) {
                                LOG.warn(
                                        "pool {}: model {} is not unloaded on pod {}: {}",
                                        pool,
                                        model,
                                        holder.name(),
                                        reason(failure).describe());
                            }
                            placement.unloaded(model, holder.name(), clock.nanos());
                            if (service != null) {
                                service.unloading--;
                            }
                            run(clock.nanos());
                        },
                        owner);
    }

    private List<Holder> holders(PooledService service) {
        List<Holder> holders = new ArrayList<>();
        for (String pod : placement.table().pods(service.name())) {
            Holder holder = pods.get(pod);
            if (holder != null) {
                holders.add(holder);
            }
        }
        return holders;
    }

    private void publish(PooledService service) {
        tables.publish(service, holders(service), false)
                .whenCompleteAsync(
                        (done, failure) -> {
                            if (failure != null) {
                                LOG.warn(
                                        "pool {}: the pods of model {} are not written: {}",
                                        pool,
                                        service.name(),
                                        reason(failure).describe());
                                service.unpublished = true;
                            }
                        },
                        owner);
    }

    private void update(PooledService service) {
        if (service.update(placement.table().pods(service.name()).size()) && services.get(service.name()) == service) {
            changes.accept(service);
        }
    }

    // ---- time ----

    /**
     * Measures, and starts what has become possible; once a second.
     *
     * @param loads the load of a service's revision at all gateways
     */
    void tick(BiFunction<PooledService, String, RevisionLoad> loads) {
        long now = clock.nanos();
        double busy = 0;
        for (PooledService service : services.values()) {
            double requests = 0;
            double concurrency = 0;
            for (String revision : service.revisions) {
                RevisionLoad load = loads.apply(service, revision);
                requests += load.requestsPerSecond();
                // Requests that wait for a load occupy no worker.
                concurrency += Math.max(0, load.concurrency() - load.waiting());
            }
            busy += concurrency;
            service.rate = requests;
            if (requests > 0 || concurrency > 0) {
                service.used = true;
                service.usedAt = now;
            }
            placement.observe(service.name(), Math.round(requests), Math.round(concurrency * 1e9), now);
            if (service.failure != null && now - service.retryAt >= 0) {
                retry(service, now);
            }
            if (service.unpublished) {
                service.unpublished = false;
                publish(service);
            }
        }
        scaler.record(now, busy);
        placement.tick(now);
        if (!settled && now - startedAt >= SETTLED.toNanos()) {
            settle();
        }
        run(now);
        services.values().forEach(this::update);
    }

    private void retry(PooledService service, long now) {
        service.retryAt = now + RETRY.toNanos();
        List<String> holders = placement.table().pods(service.name());
        if (holders.isEmpty()) {
            wanted.add(service.name());
        } else {
            holders.forEach(pod -> reload(service, pod));
        }
    }

    /** Every service is known by now: writes the tables that another operator has left, and unloads what is left over. */
    private void settle() {
        settled = true;
        services.values().forEach(this::publish);
        held.forEach((pod, names) -> {
            Holder holder = pods.get(pod);
            if (holder != null) {
                names.forEach(name -> {
                    var unused = servers.unload(holder, name);
                });
            }
            names.clear();
        });
    }

    /** The number of pods that the pool should have. */
    int desired(int now) {
        long time = clock.nanos();
        int decided = scaler.decide(
                        time,
                        Math.max(1, ready()),
                        WorkingSet.of(placement.demand(), HIT_RATE).bytes())
                .pods();
        if (scarce) {
            decided = Math.max(decided, now + 1);
        }
        decided = Math.min(decided, size.max());
        // After a start, the load is not known for as long as it takes to be sure that fewer pods are enough.
        return settled ? decided : Math.max(decided, now);
    }
}
