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
import io.nereid.control.gateway.activator.RevisionActivator;
import io.nereid.control.gateway.upstream.RevisionTarget;
import io.nereid.control.local.inprocess.EngineTrainedModels;
import io.nereid.control.local.inprocess.ModelDeployer;
import io.nereid.control.local.process.ProcessSupervisor;
import io.nereid.control.local.spi.ArtifactFetcher;
import io.nereid.control.local.spi.InProcessComponents;
import io.nereid.control.local.spi.LocalSettings;
import io.nereid.control.local.workload.RevisionLog;
import io.nereid.control.local.workload.ServiceRouting;
import io.nereid.control.plane.loop.EventLoop;
import io.nereid.control.plane.trainedmodel.TrainedModelServers;
import io.nereid.repository.ManagedModels;
import io.nereid.spi.ServableState;
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
import java.util.function.Consumer;
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
 * var infrastructure = new LocalInfrastructure(settings, managedModels, artifacts, components, gateway, Clock.system());
 * infrastructure.start();
 * infrastructure.apply("default", "iris", plan);
 * Map<String, WorkloadState> states = infrastructure.observe("default", "iris");
 * }</pre>
 */
public final class LocalInfrastructure implements Infrastructure {
    private static final Logger LOG = LoggerFactory.getLogger(LocalInfrastructure.class);
    private static final Duration SECOND = Duration.ofSeconds(1);
    private static final long END_SECONDS = 20;

    private final LocalSettings settings;
    private final ArtifactFetcher artifacts;
    private final InProcessComponents components;
    private final ServiceRouting routing;
    private final EventLoop loop;
    private final Consumer<String> output;
    private final ModelDeployer deployer;
    private final EngineTrainedModels trained;
    private final ProcessSupervisor supervisor;
    private final WorkloadRunners runners;
    private final Map<String, Service> services = new HashMap<>();
    private final Map<String, RevisionController> revisions = new LinkedHashMap<>();
    /** The same revisions by service and revision name, for readers on other threads. */
    private final Map<String, Map<String, RevisionController>> revisionsByService = new ConcurrentHashMap<>();

    private final Map<String, RevisionLog> logs = new ConcurrentHashMap<>();
    private volatile BiConsumer<String, String> listener = (namespace, service) -> {};
    private volatile boolean closed;

    /** The desired state of a service. Confined to the event loop thread. */
    private static final class Service {
        final String namespace;
        final String name;
        List<Workload> workloads = List.of();

        @Nullable Route route;

        InProcessComponents.@Nullable RunningComponent graph;
        ServiceRouting.@Nullable Activator graphActivator;

        @Nullable String graphText;

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
            ManagedModels models,
            ArtifactFetcher artifacts,
            InProcessComponents components,
            Gateway gateway,
            Clock clock) {
        this(settings, models, artifacts, components, gateway, EventLoop.threads(clock));
    }

    private LocalInfrastructure(
            LocalSettings settings,
            ManagedModels models,
            ArtifactFetcher artifacts,
            InProcessComponents components,
            Gateway gateway,
            EventLoop loop) {
        this(settings, models, artifacts, components, new GatewayServiceRouting(gateway, loop), loop);
    }

    /**
     * Creates an infrastructure for a transformer or explainer whose predictor another server serves, without starting it.
     *
     * @param models without backends: nothing is loaded
     * @param predictor the address of the predictor: host and port, or a URL
     * @param output receives each line of the components' logs
     */
    public static LocalInfrastructure ofComponent(
            LocalSettings settings,
            ManagedModels models,
            ArtifactFetcher artifacts,
            InProcessComponents components,
            Gateway gateway,
            Clock clock,
            String predictor,
            Consumer<String> output) {
        EventLoop loop = EventLoop.threads(clock);
        return new LocalInfrastructure(
                settings,
                models,
                artifacts,
                components,
                new GatewayServiceRouting(gateway, loop, predictor),
                loop,
                output);
    }

    /** Creates an infrastructure with other routing and another event loop, without starting it. */
    public LocalInfrastructure(
            LocalSettings settings,
            ManagedModels models,
            ArtifactFetcher artifacts,
            InProcessComponents components,
            ServiceRouting routing,
            EventLoop loop) {
        this(settings, models, artifacts, components, routing, loop, line -> {});
    }

    private LocalInfrastructure(
            LocalSettings settings,
            ManagedModels models,
            ArtifactFetcher artifacts,
            InProcessComponents components,
            ServiceRouting routing,
            EventLoop loop,
            Consumer<String> output) {
        this.output = output;
        this.settings = settings;
        this.artifacts = artifacts;
        this.components = components;
        this.routing = routing;
        this.loop = loop;
        this.deployer = new ModelDeployer(loop, models);
        this.trained = new EngineTrainedModels(loop);
        this.supervisor = new ProcessSupervisor(settings.directory());
        this.runners =
                new WorkloadRunners(loop, settings, artifacts, components, routing, deployer, trained, supervisor);
    }

    /** Ends the processes that an earlier server left running, and starts autoscaling. Blocks until they have ended. */
    public void start() {
        int orphans = supervisor.killOrphans();
        if (orphans > 0) {
            LOG.info("ended {} processes of an earlier server", orphans);
        }
        tick();
    }

    private void tick() {
        EventLoop.Timer unused = loop.after(SECOND, () -> {
            long now = loop.clock().nanos();
            for (RevisionController controller : List.copyOf(revisions.values())) {
                controller.tick(now);
            }
            if (!closed) {
                tick();
            }
        });
    }

    /** The engine as the server of services with many models. */
    public TrainedModelServers trainedModels() {
        return trained;
    }

    /** Receives every state change of the engine's models. Does not block. */
    public void modelState(ServableState state) {
        loop.execute(() -> deployer.state(state));
    }

    /** Reports that a request waits for a revision without replicas, which is then scaled up. Does not block. */
    public void wake(String namespace, String revision) {
        loop.execute(() -> {
            RevisionController controller = revisions.get(key(namespace, revision));
            if (controller != null) {
                controller.wake();
            }
        });
    }

    @Override
    public void retry(String namespace) {
        loop.execute(() -> revisions.values().forEach(controller -> {
            if (controller.workload().namespace().equals(namespace)) {
                controller.retryFetch();
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
            startRevision(workload);
        }
        route(service);
        for (RevisionController controller : List.copyOf(
                revisionsByService.getOrDefault(key(namespace, name), Map.of()).values())) {
            if (!planned.contains(key(namespace, controller.workload().revision()))) {
                endRevision(controller);
            }
        }
        updateReachability(service);
        if (plan.workloads().isEmpty() && plan.route() == null) {
            services.remove(key(namespace, name));
            routing.closeLocalPorts(namespace, name);
        }
    }

    /** Starts the revision of a workload, updates it, or replaces it when the change needs a restart. */
    private void startRevision(Workload workload) {
        String key = key(workload.namespace(), workload.revision());
        RevisionController controller = revisions.get(key);
        if (controller != null && (controller.ending() || controller.update(workload))) {
            // A revision that is being drained is started again by the callback of its end.
            return;
        }
        if (controller != null) {
            endRevision(controller);
            return;
        }
        String file = workload.namespace() + "." + workload.revision() + ".log";
        RevisionLog log = new RevisionLog(
                settings.directory().resolve("logs").resolve(file),
                settings.logLines(),
                settings.logBytes(),
                loop.clock(),
                output);
        logs.put(key, log);
        RevisionController created = new RevisionController(
                loop,
                settings,
                artifacts,
                components,
                routing,
                runners,
                log,
                workload,
                () -> listener.accept(workload.namespace(), workload.service()));
        revisions.put(key, created);
        revisionsByService
                .computeIfAbsent(key(workload.namespace(), workload.service()), k -> new ConcurrentHashMap<>())
                .put(workload.revision(), created);
        created.start();
    }

    private void endRevision(RevisionController controller) {
        Workload workload = controller.workload();
        controller.end(() -> {
            revisions.remove(key(workload.namespace(), workload.revision()));
            Map<String, RevisionController> of = revisionsByService.get(key(workload.namespace(), workload.service()));
            if (of != null) {
                of.remove(workload.revision());
                if (of.isEmpty()) {
                    revisionsByService.remove(key(workload.namespace(), workload.service()));
                }
            }
            Service service = services.get(key(workload.namespace(), workload.service()));
            if (service != null) {
                service.workloads.stream()
                        .filter(w -> w.revision().equals(workload.revision()))
                        .findFirst()
                        .ifPresent(this::startRevision);
                updateReachability(service);
            }
            if (!revisions.containsKey(key(workload.namespace(), workload.revision()))) {
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
                routing.route(service.namespace, service.name, route);
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
            InProcessComponents.RunningComponent graph = components.graph(route);
            String revision = graphRevision(route);
            ServiceRouting.Activator activator = routing.open(
                    service.namespace,
                    revision,
                    RevisionActivator.Settings.of(service.name),
                    new RevisionTarget.Handler(graph.codecs()));
            activator.capacity(1);
            service.graph = graph;
            service.graphActivator = activator;
            service.graphText = route.graph();
        }
        Map<Component, Route.Backend> components = route.components().isEmpty()
                ? Map.of(
                        Component.PREDICTOR,
                        new Route.Backend(List.of(new Route.Target(graphRevision(route), 100, null)), List.of(), null))
                : route.components();
        routing.route(
                service.namespace,
                service.name,
                new Route(route.namespace(), route.name(), route.kind(), route.rules(), components, route.graph()));
    }

    private static String graphRevision(Route route) {
        Route.Backend backend = route.components().get(Component.PREDICTOR);
        return backend == null || backend.targets().isEmpty()
                ? route.name()
                : backend.targets().get(0).revision();
    }

    private static void closeGraph(Service service) {
        InProcessComponents.RunningComponent graph = service.graph;
        ServiceRouting.Activator activator = service.graphActivator;
        service.graph = null;
        service.graphActivator = null;
        service.graphText = null;
        if (activator != null && graph != null) {
            activator.close(graph::close);
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
            RevisionController controller = revisions.get(key(w.namespace(), w.revision()));
            if (controller != null) {
                controller.routed(targets.contains(w.revision()));
            }
        }
    }

    // ---- observation ----

    @Override
    public Map<String, WorkloadState> observe(String namespace, String service) {
        Map<String, WorkloadState> states = new LinkedHashMap<>();
        revisionsByService.getOrDefault(key(namespace, service), Map.of()).forEach((revision, controller) -> {
            states.put(revision, controller.state());
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
            revisions.values().forEach(controller -> {
                controller.abandon();
                open.add(controller.log());
            });
            loop.io(() -> {
                supervisor.endAll();
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
