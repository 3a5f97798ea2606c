// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.control.core.Infrastructure;
import io.nereid.control.core.Plan;
import io.nereid.control.core.Route;
import io.nereid.control.core.Workload;
import io.nereid.control.core.Workload.Component;
import io.nereid.control.core.WorkloadState;
import io.nereid.control.gateway.Gateway;
import io.nereid.control.gateway.RevisionActivator;
import io.nereid.control.gateway.upstream.Destination;
import io.nereid.control.local.inprocess.InProcessRunner;
import io.nereid.control.local.inprocess.ModelDeployer;
import io.nereid.control.local.inprocess.ModelRunner;
import io.nereid.control.local.process.PortAllocator;
import io.nereid.control.local.process.ProcessRunner;
import io.nereid.control.local.process.ProcessSupervisor;
import io.nereid.control.local.process.TransformerArtifacts;
import io.nereid.control.local.spi.ArtifactFetcher;
import io.nereid.control.local.spi.EngineModels;
import io.nereid.control.local.spi.InProcessComponents;
import io.nereid.control.local.spi.LocalSettings;
import io.nereid.control.local.workload.EventLoop;
import io.nereid.control.local.workload.RevisionLog;
import io.nereid.control.local.workload.ServiceRouting;
import io.nereid.control.local.workload.WorkloadRunner;
import io.nereid.spi.ServableState;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BiConsumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Applies plans on this machine: fetches files, loads models into the engine, runs child processes, configures the
 * gateway and scales. Thread-safe: all state changes run on one event loop thread, and blocking work runs on a pool.
 *
 * <p>A revision receives requests only while it has ready replicas; without any, its requests are held. A revision that
 * is no longer planned is drained: it ends after its last request. In the engine its model is named
 * {@code namespace/revision}.
 *
 * <pre>{@code
 * var infrastructure = new LocalInfrastructure(settings, engineModels, artifacts, components, gateway, Clock.system());
 * infrastructure.start();
 * infrastructure.apply("default", "iris", plan);
 * Map<String, ObservedState.State> states = infrastructure.observe("default", "iris");
 * }</pre>
 */
public final class LocalInfrastructure implements Infrastructure {
    private static final Logger LOG = LoggerFactory.getLogger(LocalInfrastructure.class);
    private static final Duration SECOND = Duration.ofSeconds(1);
    private static final long END_SECONDS = 20;

    private final LocalSettings settings;
    private final ArtifactFetcher artifacts;
    private final InProcessComponents builtIns;
    private final ServiceRouting front;
    private final EventLoop loop;
    private final ModelDeployer placer;
    private final ProcessSupervisor table;
    private final PortAllocator ports;
    private final Map<String, Service> services = new HashMap<>();
    private final Map<String, RevisionController> units = new LinkedHashMap<>();
    /** The revisions of {@link #units} by service and revision name, for readers on other threads. */
    private final Map<String, Map<String, RevisionController>> shown = new ConcurrentHashMap<>();

    private final Map<String, RevisionLog> logs = new ConcurrentHashMap<>();
    private volatile BiConsumer<String, String> listener = (namespace, service) -> {};
    private volatile boolean closed;

    /** The desired state of a service. Confined to the event loop thread. */
    private static final class Service {
        final String namespace;
        final String name;
        List<Workload> workloads = List.of();

        @Nullable
        Route route;

        InProcessComponents.@Nullable Running graph;
        ServiceRouting.@Nullable Gate graphGate;

        @Nullable
        String graphText;

        Service(String namespace, String name) {
            this.namespace = namespace;
            this.name = name;
        }
    }

    /**
     * Creates an infrastructure without starting it. The caller connects the gateway's wake listener to {@link #wake},
     * and the engine's state listener to {@link #modelState}.
     */
    public LocalInfrastructure(
            LocalSettings settings,
            EngineModels models,
            ArtifactFetcher artifacts,
            InProcessComponents builtIns,
            Gateway gateway,
            Clock clock) {
        this(settings, models, artifacts, builtIns, gateway, EventLoop.threads(clock));
    }

    private LocalInfrastructure(
            LocalSettings settings,
            EngineModels models,
            ArtifactFetcher artifacts,
            InProcessComponents builtIns,
            Gateway gateway,
            EventLoop loop) {
        this(settings, models, artifacts, builtIns, new GatewayServiceRouting(gateway, loop), loop);
    }

    public LocalInfrastructure(
            LocalSettings settings,
            EngineModels models,
            ArtifactFetcher artifacts,
            InProcessComponents builtIns,
            ServiceRouting front,
            EventLoop loop) {
        this.settings = settings;
        this.artifacts = artifacts;
        this.builtIns = builtIns;
        this.front = front;
        this.loop = loop;
        this.placer = new ModelDeployer(loop, models);
        this.table = new ProcessSupervisor(settings.directory());
        this.ports = new PortAllocator(settings.firstPort(), settings.lastPort());
    }

    /** Ends the processes that an earlier server left running, and starts autoscaling. Blocks until they have ended. */
    public void start() {
        int orphans = table.killOrphans();
        if (orphans > 0) {
            LOG.info("ended {} processes of an earlier server", orphans);
        }
        second();
    }

    private void second() {
        EventLoop.Timer unused = loop.after(SECOND, () -> {
            long now = loop.clock().nanos();
            for (RevisionController unit : List.copyOf(units.values())) {
                unit.second(now);
            }
            if (!closed) {
                second();
            }
        });
    }

    /** Receives every state change of the engine's models. Does not block. */
    public void modelState(ServableState state) {
        loop.execute(() -> placer.state(state));
    }

    /** Reports that a request waits for a revision without replicas, which is then scaled up. Does not block. */
    public void wake(String namespace, String revision) {
        loop.execute(() -> {
            RevisionController unit = units.get(key(namespace, revision));
            if (unit != null) {
                unit.wake();
            }
        });
    }

    /** Retries failed fetches of a namespace at once, after its secrets have changed. Does not block. */
    public void retry(String namespace) {
        loop.execute(() -> units.values().forEach(u -> {
            if (u.workload().namespace().equals(namespace)) {
                u.retryFetch();
            }
        }));
    }

    private static String key(String namespace, String name) {
        return namespace + "/" + name;
    }

    @Override
    public void apply(String namespace, String service, Plan plan) {
        if (!closed) {
            // Waits, so that a status that is written after this call describes routes that already exist.
            loop.call(() -> applied(namespace, service, plan));
        }
    }

    private void applied(String namespace, String name, Plan plan) {
        Service service = services.computeIfAbsent(key(namespace, name), k -> new Service(namespace, name));
        service.workloads = plan.workloads();
        service.route = plan.route();
        Set<String> planned = new HashSet<>();
        for (Workload workload : plan.workloads()) {
            planned.add(key(namespace, workload.revision()));
            begin(workload);
        }
        route(service);
        for (RevisionController unit :
                List.copyOf(shown.getOrDefault(key(namespace, name), Map.of()).values())) {
            if (!planned.contains(key(namespace, unit.workload().revision()))) {
                end(unit);
            }
        }
        updateReachability(service);
        if (plan.workloads().isEmpty() && plan.route() == null) {
            services.remove(key(namespace, name));
            front.closeLocalPorts(namespace, name);
        }
    }

    private void begin(Workload workload) {
        String key = key(workload.namespace(), workload.revision());
        RevisionController unit = units.get(key);
        if (unit != null && (unit.ending() || unit.update(workload))) {
            // A revision that is being drained is started again by the callback of its end.
            return;
        }
        if (unit != null) {
            end(unit);
            return;
        }
        String file = workload.namespace() + "." + workload.revision() + ".log";
        RevisionLog log = new RevisionLog(
                settings.directory().resolve("logs").resolve(file),
                settings.logLines(),
                settings.logBytes(),
                loop.clock());
        logs.put(key, log);
        RevisionController made = new RevisionController(
                loop,
                settings,
                artifacts,
                builtIns,
                front,
                this::runner,
                log,
                workload,
                () -> listener.accept(workload.namespace(), workload.service()));
        units.put(key, made);
        shown.computeIfAbsent(key(workload.namespace(), workload.service()), k -> new ConcurrentHashMap<>())
                .put(workload.revision(), made);
        made.start();
    }

    private WorkloadRunner runner(
            Workload workload, List<Path> files, ServiceRouting.Gate gate, RevisionLog log, Runnable changed) {
        if (workload.form() instanceof Workload.Model) {
            return new ModelRunner(loop, placer, workload, files, gate, log, changed);
        }
        if (workload.form() instanceof Workload.Process) {
            return new ProcessRunner(
                    loop, table, settings, front, ports, workload, artifacts, files, gate, log, changed);
        }
        if (workload.form() instanceof Workload.Transformer form) {
            return transformer(workload, form, files, gate, log, changed);
        }
        warnSingleInstance(workload, log);
        return new InProcessRunner(
                loop,
                "explainer",
                () -> builtIns.explainer(workload, (Workload.Explainer) workload.form(), files),
                gate,
                log,
                changed);
    }

    /** Warns that an in-process component has a single instance when more replicas are configured. */
    private static void warnSingleInstance(Workload workload, RevisionLog log) {
        if (workload.scaling().min() > 1) {
            log.add("warning: minReplicas " + workload.scaling().min()
                    + " has no effect: one instance inside the server process serves all requests");
        }
    }

    /** Creates the runner of a transformer: a jar runs in this process, a Python file in child processes. */
    private WorkloadRunner transformer(
            Workload workload,
            Workload.Transformer form,
            List<Path> files,
            ServiceRouting.Gate gate,
            RevisionLog log,
            Runnable changed) {
        Supplier<InProcessComponents.Running> maker;
        try {
            Path file = TransformerArtifacts.find(form, files);
            if (TransformerArtifacts.isPython(file)) {
                Workload process = TransformerArtifacts.process(workload, form, file, settings.directory(), log::add);
                return new ProcessRunner(
                        loop, table, settings, front, ports, process, artifacts, files, gate, log, changed);
            }
            warnSingleInstance(workload, log);
            maker = () -> builtIns.transformer(workload, form, file);
        } catch (ServingException e) {
            maker = () -> {
                throw e;
            };
        }
        return new InProcessRunner(loop, "transformer", maker, gate, log, changed);
    }

    private void end(RevisionController unit) {
        Workload workload = unit.workload();
        unit.end(() -> {
            units.remove(key(workload.namespace(), workload.revision()));
            Map<String, RevisionController> of = shown.get(key(workload.namespace(), workload.service()));
            if (of != null) {
                of.remove(workload.revision());
                if (of.isEmpty()) {
                    shown.remove(key(workload.namespace(), workload.service()));
                }
            }
            Service service = services.get(key(workload.namespace(), workload.service()));
            if (service != null) {
                service.workloads.stream()
                        .filter(w -> w.revision().equals(workload.revision()))
                        .findFirst()
                        .ifPresent(this::begin);
                updateReachability(service);
            }
            if (!units.containsKey(key(workload.namespace(), workload.revision()))) {
                logs.remove(key(workload.namespace(), workload.revision()));
            }
            listener.accept(workload.namespace(), workload.service());
        });
    }

    // ---- routes ----

    private void route(Service service) {
        Route route = service.route;
        try {
            if (route != null && !route.graph().isEmpty()) {
                graph(service, route);
            } else {
                front.route(service.namespace, service.name, route);
                closeGraph(service);
            }
        } catch (RuntimeException e) {
            LOG.error(
                    "service {}/{} has no route: {}",
                    service.namespace,
                    service.name,
                    ServingException.from(e).describe());
        }
    }

    /** Routes to a graph, which runs in this process as a revision of its own. */
    private void graph(Service service, Route route) {
        if (!route.graph().equals(service.graphText)) {
            closeGraph(service);
            InProcessComponents.Running graph = builtIns.graph(route);
            String revision = graphRevision(route);
            ServiceRouting.Gate gate = front.open(
                    service.namespace,
                    revision,
                    RevisionActivator.Settings.of(service.name),
                    new Destination.Handler(graph.codecs()));
            gate.capacity(1);
            service.graph = graph;
            service.graphGate = gate;
            service.graphText = route.graph();
        }
        Map<Component, Route.Backend> components = route.components().isEmpty()
                ? Map.of(
                        Component.PREDICTOR,
                        new Route.Backend(List.of(new Route.Target(graphRevision(route), 100, null)), List.of(), null))
                : route.components();
        front.route(
                service.namespace,
                service.name,
                new Route(route.namespace(), route.name(), route.kind(), route.doors(), components, route.graph()));
    }

    private static String graphRevision(Route route) {
        Route.Backend backend = route.components().get(Component.PREDICTOR);
        return backend == null || backend.targets().isEmpty()
                ? route.name()
                : backend.targets().get(0).revision();
    }

    private static void closeGraph(Service service) {
        InProcessComponents.Running graph = service.graph;
        ServiceRouting.Gate gate = service.graphGate;
        service.graph = null;
        service.graphGate = null;
        service.graphText = null;
        if (gate != null && graph != null) {
            gate.close(graph::close);
        }
    }

    private void updateReachability(Service service) {
        Set<String> targets = new HashSet<>();
        Route route = service.route;
        if (route != null) {
            for (Route.Backend backend : route.components().values()) {
                backend.targets().stream()
                        .filter(t -> t.percent() > 0 || t.tag() != null)
                        .forEach(t -> targets.add(t.revision()));
                backend.mirrors().forEach(t -> targets.add(t.revision()));
            }
        }
        for (Workload w : service.workloads) {
            RevisionController unit = units.get(key(w.namespace(), w.revision()));
            if (unit != null) {
                unit.routed(targets.contains(w.revision()));
            }
        }
    }

    // ---- observation ----

    @Override
    public Map<String, WorkloadState> observe(String namespace, String service) {
        Map<String, WorkloadState> states = new LinkedHashMap<>();
        shown.getOrDefault(key(namespace, service), Map.of()).forEach((revision, unit) -> {
            states.put(revision, unit.state());
        });
        return states;
    }

    @Override
    public void onChange(BiConsumer<String, String> callback) {
        listener = callback;
    }

    @Override
    public List<String> logs(String namespace, String revision, int most) {
        RevisionLog log = logs.get(key(namespace, revision));
        return log == null ? List.of() : log.last(most);
    }

    /** Ends all child processes and stops the event loop. Models stay in the engine until the engine is closed. */
    @Override
    public void close() {
        if (closed) {
            return;
        }
        closed = true;
        CountDownLatch ended = new CountDownLatch(1);
        loop.execute(() -> {
            List<RevisionLog> open = new ArrayList<>();
            units.values().forEach(u -> {
                u.abandon();
                open.add(u.log());
            });
            loop.io(() -> {
                table.endAll();
                open.forEach(RevisionLog::close);
                ended.countDown();
            });
        });
        try {
            if (!ended.await(END_SECONDS, TimeUnit.SECONDS)) {
                LOG.warn("child processes have not exited within {} s", END_SECONDS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        loop.close();
    }
}
