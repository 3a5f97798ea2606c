// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.control.core.Route;
import io.nereid.control.core.Route.IngressRule;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.gateway.activator.ActivatorContext;
import io.nereid.control.gateway.activator.ActivatorContext.LocalModels;
import io.nereid.control.gateway.activator.ActivatorSlot;
import io.nereid.control.gateway.activator.NestedRevisionRequest;
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.control.gateway.activator.RevisionEngineView;
import io.nereid.control.gateway.activator.WakeListener;
import io.nereid.control.gateway.upstream.ProtocolTranscoder;
import io.nereid.control.gateway.upstream.RevisionCodecs;
import io.nereid.control.gateway.upstream.RevisionTarget;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.scheduling.admission.AdmissionControl;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.management.ModelControl;
import io.nereid.tensor.ByteBudget;
import io.nereid.tensor.MemoryRegion;
import io.nereid.transport.api.HttpExchange;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.api.UpstreamClient;
import io.nereid.transport.api.UpstreamResponse;
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
 * Finds the service and the revision for a request: by host, path prefix or port. The revision is chosen once for each
 * request, and each revision has routes of its own, so a model's metadata and its predictions always come from the same
 * revision.
 *
 * <p>Thread-safe: lookups take no lock; services and activators are replaced as a whole.
 *
 * <pre>{@code
 * Gateway gateway = new Gateway(engine, control, codecs, upstream, transcoder, clock, scaler::wake);
 * gateway.hostFactory(server);
 * RevisionActivator activator = gateway.openActivator("default", "iris-predictor-00001", settings, destination);
 * gateway.route("default", "iris", route);
 * activator.capacity(1);
 * }</pre>
 */
public final class Gateway implements VirtualHosts, AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(Gateway.class);
    private static final long BYTES_HELD = 256L << 20;
    private static final long SWEEP_MILLIS = 50;

    private final ActivatorContext context;
    private final @Nullable ThreadPoolExecutor pool;
    private final @Nullable ScheduledThreadPoolExecutor timer;
    private final HostPathTable table = new HostPathTable();
    private final Map<String, ServiceRoute> services = new ConcurrentHashMap<>();
    private final Map<String, ActivatorSlot> slots = new ConcurrentHashMap<>();
    private final Set<RevisionActivator> activators = ConcurrentHashMap.newKeySet();
    private volatile boolean restoring;

    /** Creates a gateway without services. The bodies of waiting requests take at most 256 MiB. */
    public Gateway(
            InferenceEngine engine,
            ModelControl control,
            RevisionCodecs codecs,
            UpstreamClient upstream,
            ProtocolTranscoder transcoder,
            Clock clock,
            WakeListener listener) {
        this(new LocalModels(engine, control, codecs), upstream, transcoder, clock, listener);
    }

    /** Creates a gateway without services in a process without an engine: all replicas are other processes. */
    public Gateway(UpstreamClient upstream, ProtocolTranscoder transcoder, Clock clock, WakeListener listener) {
        this(null, upstream, transcoder, clock, listener);
    }

    private Gateway(
            @Nullable LocalModels models,
            UpstreamClient upstream,
            ProtocolTranscoder transcoder,
            Clock clock,
            WakeListener listener) {
        ThreadPoolExecutor resumed =
                Threads.pool("gateway", Math.max(2, Runtime.getRuntime().availableProcessors() / 2));
        this.context = new ActivatorContext(
                models,
                upstream,
                transcoder,
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

    /** Creates a gateway without threads, for tests, which run the waiting requests and advance the time themselves. */
    public Gateway(
            InferenceEngine engine,
            ModelControl control,
            RevisionCodecs codecs,
            UpstreamClient upstream,
            ProtocolTranscoder transcoder,
            Clock clock,
            WakeListener listener,
            Executor executor,
            ByteBudget budget,
            IntUnaryOperator chance) {
        this.context = new ActivatorContext(
                new LocalModels(engine, control, codecs),
                upstream,
                transcoder,
                clock,
                listener,
                executor,
                budget,
                chance);
        this.pool = null;
        this.timer = null;
    }

    /** Sets the factory of virtual hosts. Call it before the first request. */
    public void hostFactory(VirtualHostFactory factory) {
        context.factory(factory);
    }

    /**
     * Sets what refuses requests that would wait in the queue of a revision with a concurrency limit; null for nothing
     * but the size of the queue. Call it before the first activator is opened.
     */
    public void admission(@Nullable AdmissionControl control) {
        context.admission(control);
    }

    /**
     * Sets whether the services of the server's previous run are still being restored. While they are, a request that
     * may be for one of them receives 503 instead of 404, because clients retry after a 503.
     */
    public void restoring(boolean still) {
        restoring = still;
    }

    /** Replaces the route of a service; null removes it. */
    public synchronized void route(String namespace, String name, @Nullable Route route) {
        String key = key(namespace, name);
        ServiceRoute old = services.get(key);
        if (old != null && route != null && old.route.equals(route)) {
            return;
        }
        ServiceRoute next = route == null ? null : new ServiceRoute(route, this::slot);
        if (next != null) {
            services.put(key, next);
            for (IngressRule rule : next.route.rules()) {
                table.add(rule, next);
            }
        } else {
            services.remove(key);
        }
        if (old != null) {
            for (IngressRule rule : old.route.rules()) {
                table.remove(rule, old);
            }
        }
        mirror(old, next);
    }

    /** Sets the mirror targets of the activators. */
    private void mirror(@Nullable ServiceRoute old, @Nullable ServiceRoute next) {
        Set<ActivatorSlot> kept = new HashSet<>();
        if (next != null) {
            for (TrafficSplit split : next.splits.values()) {
                for (ActivatorSlot slot : split.targets()) {
                    slot.mirrors(
                            split.mirrors.stream().filter(m -> m.target != slot).toList());
                    kept.add(slot);
                }
            }
        }
        if (old != null) {
            for (TrafficSplit split : old.splits.values()) {
                for (ActivatorSlot slot : split.targets()) {
                    if (!kept.contains(slot)) {
                        slot.mirrors(List.of());
                    }
                }
            }
        }
    }

    private ActivatorSlot slot(String namespace, String revision) {
        return slots.computeIfAbsent(key(namespace, revision), k -> new ActivatorSlot(namespace, revision));
    }

    private static String key(String namespace, String name) {
        return namespace + "/" + name;
    }

    /**
     * Opens the activator of a revision. It replaces an earlier one of the same name, which the caller should close.
     * Requests are held until the activator has capacity.
     */
    public RevisionActivator openActivator(
            String namespace, String revision, RevisionActivator.Settings settings, RevisionTarget destination) {
        ActivatorSlot slot = slot(namespace, revision);
        RevisionActivator activator = new RevisionActivator(context, namespace, revision, settings, destination);
        activators.add(activator);
        slot.activator(activator);
        activator.drained().whenComplete((v, e) -> {
            activators.remove(activator);
            slot.leave(activator);
        });
        return activator;
    }

    /** Whether it has a route for a service or graph. */
    public boolean serves(String namespace, String name) {
        return services.containsKey(key(namespace, name));
    }

    /** The route that a request follows; null when it follows none. */
    public @Nullable Route routeOf(Head head) {
        HostPathTable.Entry entry = table.find(head.authority(), head.path());
        return entry == null ? null : entry.service().route;
    }

    /** The activator of a revision, or null. */
    public @Nullable RevisionActivator activator(String namespace, String revision) {
        ActivatorSlot slot = slots.get(key(namespace, revision));
        return slot == null ? null : slot.activator();
    }

    @Override
    public @Nullable VirtualHost find(Head head) {
        HostPathTable.Entry entry = table.find(head.authority(), head.path());
        if (entry == null) {
            if (restoring && HostPathTable.mayBeForService(head)) {
                throw ServingException.of(
                        ErrorCode.UNAVAILABLE,
                        "the server has just started and does not know its services yet",
                        "try again in a moment");
            }
            return null;
        }
        IngressRule rule = entry.rule();
        return entry.service()
                .virtualHost(head, rule.component(), rule.tag(), HostPathTable.prefix(rule), context.chance);
    }

    /**
     * Opens a port for a service or one of its components, whatever host a request names. While the service has no
     * route, the port responds with 503.
     *
     * @param component the component; null for the service's entry point
     * @param port 0 for any free port
     */
    public Listener listen(String namespace, String name, @Nullable Component component, String address, int port) {
        VirtualHosts hosts = head -> virtualHost(namespace, name, component, head);
        return context.factory().listen(address, port, hosts);
    }

    private ServiceRoute service(String namespace, String name) {
        ServiceRoute service = services.get(key(namespace, name));
        if (service == null) {
            throw ServingException.of(
                    ErrorCode.UNAVAILABLE, "there is no service '" + name + "' in namespace '" + namespace + "'");
        }
        return service;
    }

    private VirtualHost virtualHost(String namespace, String name, @Nullable Component component, Head head) {
        return service(namespace, name).virtualHost(head, component, null, "", context.chance);
    }

    /**
     * Calls a service with POST from within this process.
     *
     * @param component the component; null for the service's entry point
     * @param target path and query
     * @param headers names in lower case
     * @param body its ownership passes to this method in every case
     * @return the whole response, also for error statuses. Fails with UNAVAILABLE when the service does not exist
     */
    public CompletionStage<UpstreamResponse> call(
            String namespace,
            String name,
            @Nullable Component component,
            String target,
            List<UpstreamClient.Header> headers,
            MemoryRegion body) {
        return call(namespace, name, component, "POST", target, headers, body);
    }

    /** Calls a service with any verb from within this process. */
    public CompletionStage<UpstreamResponse> call(
            String namespace,
            String name,
            @Nullable Component component,
            String method,
            String target,
            List<UpstreamClient.Header> headers,
            MemoryRegion body) {
        VirtualHost virtualHost;
        try {
            virtualHost = virtualHost(namespace, name, component, new InnerHead(target, find(headers)));
        } catch (ServingException e) {
            body.release();
            return CompletableFuture.failedStage(e);
        }
        return virtualHost.call(method, target, headers, body);
    }

    /**
     * Runs a request at a service's predictor as if it had been sent to it: it is counted there, takes a permit, waits
     * while the revision is activated, and follows the traffic split. It is not reported to the predictor's listener
     * and not mirrored.
     *
     * @param handler receives the exchange to answer, and the models of the revision that was chosen; on any thread
     * @return false, without an effect, when the engine does not answer for the service: it has a transformer or a
     *     child process
     * @throws ServingException UNAVAILABLE when no revision can answer
     */
    public boolean runNested(
            HttpExchange x, String namespace, String name, BiConsumer<HttpExchange, InferenceEngine> handler) {
        RevisionActivator activator =
                service(namespace, name).directPredictorActivator(new InnerHead(x), context.chance);
        if (activator == null || !(activator.destination() instanceof RevisionTarget.Models models)) {
            return false;
        }
        RevisionEngineView view = new RevisionEngineView(
                activator, models, context.models().engine(), context.models().control());
        activator.enter(new NestedRevisionRequest(activator, x, exchange -> handler.accept(exchange, view)));
        return true;
    }

    /**
     * The protocols of a component in front of a service's predictor, such as a transformer in this process. Each
     * request takes a permit of the predictor while it is processed, waits while the predictor is activated, and
     * follows its traffic split; it is not reported to the predictor's listener.
     *
     * @param codecs builds the protocols around a revision's models; called once for each revision, and once before
     */
    public List<ProtocolCodec> transformerCodecs(String namespace, String name, RevisionCodecs codecs) {
        return TransformerCodec.all(
                context, head -> service(namespace, name).predictorActivator(head, context.chance), codecs);
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

    /** The head of a call within this process. Immutable. */
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

    /** Rejects requests that have waited too long. */
    public void sweep(long now) {
        for (RevisionActivator activator : context.withQueue) {
            try {
                activator.sweep(now);
            } catch (RuntimeException e) {
                // The requests of the other revisions must not wait for ever because of this failure.
                LOG.error("requests that wait for revision {} could not be rejected", activator.revision(), e);
            }
        }
    }

    /** Adds the metrics of the activators to a page. */
    public void writeMetrics(MetricsWriter page) {
        List<RevisionActivator> sorted = activators.stream()
                .sorted(Comparator.comparing(RevisionActivator::namespace).thenComparing(RevisionActivator::revision))
                .toList();
        new GatewayMetrics(page, sorted).write();
    }

    /** Rejects waiting requests; running ones continue. */
    @Override
    public void close() {
        for (RevisionActivator activator : activators) {
            activator.reject("the server is shutting down");
        }
        if (timer != null) {
            timer.shutdown();
        }
        if (pool != null) {
            pool.shutdown();
        }
    }
}
