// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.core.Route;
import io.nereid.control.core.Route.Door;
import io.nereid.control.core.Workload.Component;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ModelControl;
import io.nereid.tensor.ByteBudget;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.VirtualHosts;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Executor;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.IntUnaryOperator;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Finds the service that a request is for and the revision that answers: by the host that the client names, by the beginning of
 * the path, or by the port. The revision is chosen once for each request, and each revision has routes of its own, so that
 * what a client is told of a model and what answers it never differ.
 *
 * <p>Thread-safe: finding takes no lock; services and gates are replaced whole.
 */
public final class Gateway implements VirtualHosts, AutoCloseable {
    /** Hears of requests that wait. */
    @FunctionalInterface
    public interface WakeListener {
        /**
         * A request waits for a revision without replicas. Called once until it has some, and again when nobody waited any
         * longer; must return at once.
         */
        void wake(String namespace, String revision);
    }

    private static final Logger LOG = LoggerFactory.getLogger(Gateway.class);
    private static final long BYTES_HELD = 256L << 20;
    private static final long SWEEP_MILLIS = 50;

    private final GatewayContext context;
    private final @Nullable ThreadPoolExecutor pool;
    private final @Nullable ScheduledThreadPoolExecutor timer;
    private final Doors doors = new Doors();
    private final Map<String, ServiceEntry> services = new ConcurrentHashMap<>();
    private final Map<String, GateSlot> slots = new ConcurrentHashMap<>();
    private final Set<RevisionGate> gates = ConcurrentHashMap.newKeySet();
    private volatile boolean gathering;

    /** A gateway without services, which keeps at most 256 MiB of requests that wait. */
    public Gateway(
            InferenceEngine engine,
            ModelControl control,
            SiteCodecs codecs,
            UpstreamClient upstream,
            Bridge bridge,
            Clock clock,
            WakeListener listener) {
        ThreadPoolExecutor resumed =
                Threads.pool("gateway", Math.max(2, Runtime.getRuntime().availableProcessors() / 2));
        this.context = new GatewayContext(
                engine,
                control,
                codecs,
                upstream,
                bridge,
                clock,
                listener,
                resumed,
                new ByteBudget(BYTES_HELD),
                bound -> ThreadLocalRandom.current().nextInt(bound));
        this.pool = resumed;
        ScheduledThreadPoolExecutor sweeps = Threads.timer("gateway-sweep");
        Object unused = sweeps.scheduleWithFixedDelay(
                () -> sweep(clock.nanos()), SWEEP_MILLIS, SWEEP_MILLIS, TimeUnit.MILLISECONDS);
        this.timer = sweeps;
    }

    /** Without threads of its own: tests run what waits, and let time pass. */
    Gateway(
            InferenceEngine engine,
            ModelControl control,
            SiteCodecs codecs,
            UpstreamClient upstream,
            Bridge bridge,
            Clock clock,
            WakeListener listener,
            Executor executor,
            ByteBudget budget,
            IntUnaryOperator chance) {
        this.context = new GatewayContext(
                engine, control, codecs, upstream, bridge, clock, listener, executor, budget, chance);
        this.pool = null;
        this.timer = null;
    }

    /** Sets what makes sites; before the first request. */
    public void sites(SiteFactory factory) {
        context.factory(factory);
    }

    /**
     * Says whether services are still to come that were there when the server was last up. As long as they are, a request that
     * may be for one of them gets 503 rather than 404, for clients try again after the one and give up after the other.
     */
    public void gathering(boolean still) {
        gathering = still;
    }

    /** Replaces the way to a service, or ends it with null. */
    public synchronized void route(String namespace, String name, @Nullable Route route) {
        String key = key(namespace, name);
        ServiceEntry old = services.get(key);
        if (old != null && route != null && old.route.equals(route)) {
            return;
        }
        ServiceEntry next = route == null ? null : new ServiceEntry(route, this::slot);
        if (next != null) {
            services.put(key, next);
            for (Door door : next.route.doors()) {
                doors.add(door, next);
            }
        } else {
            services.remove(key);
        }
        if (old != null) {
            for (Door door : old.route.doors()) {
                doors.remove(door, old);
            }
        }
        mirror(old, next);
    }

    /** Tells gates whom their requests are copied to. */
    private void mirror(@Nullable ServiceEntry old, @Nullable ServiceEntry next) {
        Set<GateSlot> kept = new HashSet<>();
        if (next != null) {
            for (Lane lane : next.lanes.values()) {
                for (GateSlot slot : lane.targets()) {
                    slot.mirrors(
                            lane.mirrors.stream().filter(m -> m.target != slot).toList());
                    kept.add(slot);
                }
            }
        }
        if (old != null) {
            for (Lane lane : old.lanes.values()) {
                for (GateSlot slot : lane.targets()) {
                    if (!kept.contains(slot)) {
                        slot.mirrors(List.of());
                    }
                }
            }
        }
    }

    private GateSlot slot(String namespace, String revision) {
        return slots.computeIfAbsent(key(namespace, revision), k -> new GateSlot(namespace, revision));
    }

    private static String key(String namespace, String name) {
        return namespace + "/" + name;
    }

    /**
     * A revision's way in; it takes the place of an earlier one of the same name, which should be closed. Requests are held
     * until there is capacity.
     */
    public RevisionGate open(
            String namespace, String revision, RevisionGate.Settings settings, Destination destination) {
        GateSlot slot = slot(namespace, revision);
        RevisionGate gate = new RevisionGate(context, namespace, revision, settings, destination);
        gates.add(gate);
        slot.gate(gate);
        gate.drained().whenComplete((v, e) -> {
            gates.remove(gate);
            slot.leave(gate);
        });
        return gate;
    }

    /** The way in of a revision, or null. */
    public @Nullable RevisionGate gate(String namespace, String revision) {
        GateSlot slot = slots.get(key(namespace, revision));
        return slot == null ? null : slot.gate();
    }

    @Override
    public @Nullable Site find(Head head) {
        Doors.Lead lead = doors.find(head.authority(), head.path());
        if (lead == null) {
            if (gathering && Doors.mayLead(head)) {
                throw ServingException.of(
                        ErrorCode.UNAVAILABLE,
                        "the server has just started and does not know its services yet",
                        "try again in a moment");
            }
            return null;
        }
        Door door = lead.door();
        return lead.service().site(head, door.component(), door.tag(), Doors.prefix(door), context.chance);
    }

    /**
     * Opens a port that leads to a service, or to one part of it, whatever host is named; while the service has no route it
     * answers 503.
     *
     * @param component the part; null for the front
     * @param port 0 for any that is free
     */
    public Listener door(String namespace, String name, @Nullable Component component, String address, int port) {
        VirtualHosts hosts = head -> site(namespace, name, component, head);
        return context.factory().listen(address, port, hosts);
    }

    private ServiceEntry entry(String namespace, String name) {
        ServiceEntry service = services.get(key(namespace, name));
        if (service == null) {
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE, "there is no service '" + name + "' in namespace '" + namespace + "'");
        }
        return service;
    }

    private Site site(String namespace, String name, @Nullable Component component, Head head) {
        return entry(namespace, name).site(head, component, null, "", context.chance);
    }

    /**
     * Calls a service with POST from inside this process.
     *
     * @param component the part; null for the front
     * @param target path and query
     * @param headers names in lower case
     * @param body taken over, whatever happens
     * @return the whole answer; errors of the service are answers too. Fails with UNAVAILABLE when there is no such service
     */
    public CompletionStage<UpstreamClient.Answer> call(
            String namespace,
            String name,
            @Nullable Component component,
            String target,
            List<UpstreamClient.Header> headers,
            MemoryRegion body) {
        return call(namespace, name, component, "POST", target, headers, body);
    }

    /** As the other one, with any verb. */
    public CompletionStage<UpstreamClient.Answer> call(
            String namespace,
            String name,
            @Nullable Component component,
            String method,
            String target,
            List<UpstreamClient.Header> headers,
            MemoryRegion body) {
        Site site;
        try {
            site = site(namespace, name, component, new InnerHead(target, find(headers)));
        } catch (ServingException e) {
            body.release();
            return CompletableFuture.failedStage(e);
        }
        return site.call(method, target, headers, body);
    }

    /**
     * Lets a request through to a service's predictor as if it had come for it: it counts there, takes a place, waits while the
     * revision wakes, and goes by the shares. Nobody listens to it there, and it is not copied.
     *
     * @param visitor takes the exchange to answer and the door to the models of the revision that was chosen, on any thread
     * @return false, and nothing has happened, when something else than the engine answers for the service: a transformer or a
     *     child process
     * @throws ServingException UNAVAILABLE when nothing can answer
     */
    public boolean visit(
            HttpExchange x, String namespace, String name, BiConsumer<HttpExchange, InferenceEngine> visitor) {
        RevisionGate gate = entry(namespace, name).predictor(new InnerHead(x), context.chance);
        if (gate == null || !(gate.destination() instanceof Destination.Models models)) {
            return false;
        }
        RevisionView view = new RevisionView(gate, models, context.engine, context.control);
        gate.enter(new VisitingPassage(gate, x, visit -> visitor.accept(visit, view)));
        return true;
    }

    /**
     * Protocols of a part that is in front of a service's predictor and runs in this process. Each request takes a place at the
     * predictor while it is answered, waits while that wakes, and goes by the shares; nobody listens to it there.
     *
     * @param codecs builds the protocols around a revision's models; called once for each revision, and once before
     */
    public List<ProtocolCodec> inFrontOf(String namespace, String name, SiteCodecs codecs) {
        return FrontCodec.all(context, head -> entry(namespace, name).behind(head, context.chance), codecs);
    }

    private static Function<String, @Nullable String> find(List<UpstreamClient.Header> headers) {
        return lowerCaseName -> {
            for (UpstreamClient.Header header : headers) {
                if (header.name().toLowerCase(Locale.ROOT).equals(lowerCaseName)) {
                    return header.value();
                }
            }
            return null;
        };
    }

    /** The head of a call from inside. Immutable. */
    private record InnerHead(String target, Function<String, @Nullable String> find) implements Head {
        InnerHead(HttpExchange x) {
            this(x.path(), x::header);
        }

        @Override
        public String method() {
            return "POST";
        }

        @Override
        public String path() {
            int query = target.indexOf('?');
            return query < 0 ? target : target.substring(0, query);
        }

        @Override
        public @Nullable String authority() {
            return null;
        }

        @Override
        public @Nullable String header(String lowerCaseName) {
            return find.apply(lowerCaseName);
        }
    }

    /** Refuses those that have waited too long. */
    void sweep(long now) {
        for (RevisionGate gate : context.lined) {
            try {
                gate.sweep(now);
            } catch (RuntimeException e) {
                // one gate's trouble must not leave the others' requests waiting for ever
                LOG.error("requests that wait for revision {} could not be refused", gate.revision(), e);
            }
        }
    }

    /** What the gates have counted, in lines of Prometheus' text format. */
    public String metrics() {
        return GatewayMetrics.write(gates.stream()
                .sorted(Comparator.comparing(RevisionGate::namespace).thenComparing(RevisionGate::revision))
                .toList());
    }

    /** Refuses whatever waits; requests that run go on. */
    @Override
    public void close() {
        for (RevisionGate gate : gates) {
            gate.refuse("the server is shutting down");
        }
        if (timer != null) {
            timer.shutdown();
        }
        if (pool != null) {
            pool.shutdown();
        }
    }
}
