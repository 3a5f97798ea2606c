// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.controlplane;

import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.app.process.ProgramVersion;
import io.nereid.base.Clock;
import io.nereid.control.api.InferenceService;
import io.nereid.control.api.admission.Admission;
import io.nereid.control.api.admission.Site;
import io.nereid.control.api.config.InferenceServiceConfig;
import io.nereid.control.api.store.ResourceStore;
import io.nereid.control.apiserver.ApiServer;
import io.nereid.control.core.plan.Planner;
import io.nereid.control.core.runtime.RuntimeCatalog;
import io.nereid.control.core.runtime.RuntimeSelection;
import io.nereid.control.gateway.Gateway;
import io.nereid.control.gateway.upstream.RevisionCodecs;
import io.nereid.control.kubernetes.crd.CustomResourceDefinitions;
import io.nereid.control.local.LocalInfrastructure;
import io.nereid.control.local.localmodel.LocalModelController;
import io.nereid.control.local.spi.LocalGpu;
import io.nereid.control.local.spi.LocalSettings;
import io.nereid.control.plane.PlanReconciler;
import io.nereid.control.plane.ServiceController;
import io.nereid.control.plane.languagemodel.LanguageModelController;
import io.nereid.control.plane.loop.EventLoop;
import io.nereid.control.plane.loop.Retries;
import io.nereid.control.plane.reconcile.EventRecorder;
import io.nereid.control.plane.reconcile.RuntimeCatalogCache;
import io.nereid.control.plane.trainedmodel.TrainedModelController;
import io.nereid.control.store.FileResourceStore;
import io.nereid.engine.Engine;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.payload.PayloadLogs;
import io.nereid.repository.ManagedModels;
import io.nereid.scheduling.admission.AdmissionControl;
import io.nereid.spi.InferenceEngine;
import io.nereid.storage.Storage;
import io.nereid.storage.spi.StorageProvider;
import io.nereid.transport.EventLoops;
import io.nereid.transport.api.HttpRoute;
import io.nereid.transport.api.VirtualHosts;
import io.nereid.transport.proxy.PooledUpstreamClient;
import io.nereid.transport.server.Server;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Composes the control plane: store, API, controller, infrastructure and gateway, without a dependency injection
 * framework. Confined to the thread that starts and stops the server.
 */
public final class ControlPlane implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(ControlPlane.class);
    private static final Duration LONGEST_RESTORING = Duration.ofSeconds(30);

    private final ControlFlags flags;
    private final ResourceStore store;
    private final ControlPlaneSettings settings;
    private final Clock clock;
    private final Storage storage;
    private final PooledUpstreamClient upstream;
    private final LoggerConnections loggerConnections;
    private final PayloadLogs payloads;
    private final Gateway gateway;
    private final LocalInfrastructure infrastructure;
    private final ServiceController controller;
    private final LanguageModelController languageModels;
    private final LocalModelController localModels;
    private final TrainedModelController trainedModels;
    private final ApiServer api;
    private volatile RuntimeCatalog.Gateway address = RuntimeCatalog.Gateway.UNKNOWN;
    /** The defaults, for settings that are not stored. */
    private volatile InferenceServiceConfig base = InferenceServiceConfig.defaults();

    private VirtualHosts.@Nullable Listener listener;

    /**
     * @param stores storage providers of plugins
     * @param models the engine's model source for the models of services
     * @param inference the engine's inference API, behind the request recorder
     * @param gpus the GPUs of this machine that can be used now
     * @param pool runs work that would block event loops
     */
    public ControlPlane(
            ControlFlags flags,
            Clock clock,
            List<StorageProvider> stores,
            ManagedModels models,
            InferenceEngine inference,
            Engine engine,
            RevisionCodecs codecs,
            Supplier<List<LocalGpu>> gpus,
            Executor pool,
            EventLoops loops) {
        this.flags = flags;
        this.clock = clock;
        Path directory = flags.directory().toAbsolutePath();
        this.store = FileResourceStore.open(directory.resolve("resources"), clock);
        this.settings = new ControlPlaneSettings(store, () -> base);
        this.storage = new Storage(flags.storage(), clock, stores);
        PooledUpstreamClient.Options upstreamOptions = PooledUpstreamClient.Options.DEFAULT.withLoops(loops);
        this.upstream = new PooledUpstreamClient(upstreamOptions);
        this.loggerConnections = new LoggerConnections(upstream, upstreamOptions, store, settings::config);
        ServiceArtifactFetcher artifacts = new ServiceArtifactFetcher(storage, store, settings::config);
        this.payloads = new PayloadLogs(clock, upstream, artifacts);
        this.gateway =
                new Gateway(inference, engine, codecs, upstream, new V2ProtocolTranscoder(pool), clock, this::wake);
        gateway.admission(flags.overloadTarget.isZero() ? null : AdmissionControl.overload(flags.overloadTarget));
        LocalSettings local = LocalSettings.of(directory.resolve("workloads"), System.getenv())
                .withGpus(gpus);
        this.infrastructure = new LocalInfrastructure(
                local,
                models,
                artifacts,
                new ServiceComponents(
                        gateway,
                        upstream,
                        settings::config,
                        pool,
                        clock,
                        payloads,
                        loggerConnections,
                        new JavaTransformerFactory(
                                gateway, codecs, local.directory().resolve("work"))),
                gateway,
                clock);
        engine.onState(infrastructure::modelState);
        gateway.restoring(true);
        this.controller = new ServiceController(
                store,
                new PlanReconciler(store, infrastructure),
                new RuntimeCatalogCache(() -> address, () -> base),
                new EventRecorder(store, clock),
                Retries.ofReconciliation(),
                EventLoop.threads(clock));
        this.languageModels = new LanguageModelController(
                store,
                RuntimeCatalogCache.HOME,
                Site.ONE_MACHINE,
                new EventRecorder(store, clock),
                EventLoop.threads(clock));
        this.localModels =
                new LocalModelController(store, artifacts, new EventRecorder(store, clock), EventLoop.threads(clock));
        this.trainedModels =
                new TrainedModelController(store, store, infrastructure.trainedModels(), EventLoop.threads(clock));
        this.api = new ApiServer(
                store,
                new Admission(settings),
                new ApiServer.Options(
                        ProgramVersion.number(),
                        clock,
                        this::logs,
                        this::explain,
                        infrastructure,
                        this::advice,
                        CustomResourceDefinitions.all()));
    }

    private void wake(String namespace, String revision) {
        infrastructure.wake(namespace, revision);
    }

    /** The virtual hosts of the services, which select the routes of a request. */
    public VirtualHosts hosts() {
        return gateway;
    }

    /** The route of the control API, which matches every path. */
    public HttpRoute route() {
        return api.httpRoutes().get(0);
    }

    /** Opens the control API and starts the controllers. */
    public void start(Server server, List<InetSocketAddress> addresses) {
        gateway.hostFactory(server);
        InetSocketAddress first = addresses.get(0);
        String at = "localhost:" + first.getPort();
        address = new RuntimeCatalog.Gateway(at, at);
        base = flags.settings(first.getPort());
        infrastructure.start();
        controller.start();
        languageModels.start();
        localModels.start();
        trainedModels.start();
        awaitRoutes();
        listener = server.listen(
                flags.address,
                flags.port,
                server.virtualHost(api.httpRoutes(), api.grpcMethods(), ""),
                flags.certificate());
    }

    /** Waits, up to a limit, until the stored services have their routes. */
    private void awaitRoutes() {
        try {
            if (!controller.settled(LONGEST_RESTORING)) {
                LOG.warn(
                        "not all services have routes after {} s; starting anyway, the others" + " follow",
                        LONGEST_RESTORING.toSeconds());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        gateway.restoring(false);
    }

    /** The port of the control API, once it is open. */
    public int port() {
        return listener == null ? 0 : listener.port();
    }

    /** Adds the control plane's metrics to a page. */
    public void writeMetrics(MetricsWriter page) {
        gateway.writeMetrics(page);
        payloads.writeMetrics(page);
    }

    private List<String> logs(String namespace, String service, @Nullable String component, int most) {
        Map<String, ?> revisions = infrastructure.observe(namespace, service);
        List<String> names = new ArrayList<>(revisions.keySet());
        names.removeIf(name -> component != null && !name.contains("-" + component + "-"));
        names.sort(null);
        List<String> lines = new ArrayList<>();
        for (String name : names) {
            for (String line : infrastructure.logs(namespace, name, most)) {
                lines.add(names.size() > 1 ? name + ": " + line : line);
            }
        }
        return lines.subList(Math.max(0, lines.size() - most), lines.size());
    }

    private List<String> advice(ObjectNode service) {
        InferenceService read = InferenceService.read(service);
        return Planner.withoutEffect(
                read, settings.catalog(read.metadata().namespace()), Instant.ofEpochMilli(clock.millis()));
    }

    private @Nullable RuntimeSelection explain(ObjectNode service) {
        InferenceService read = InferenceService.read(service);
        return RuntimeSelection.of(read, settings.catalog(read.metadata().namespace()));
    }

    /** Stops reconciling changes. Workloads keep running until {@link #close}. */
    public void beginDrain() {
        controller.close();
        languageModels.close();
        localModels.close();
        trainedModels.close();
        api.close();
    }

    @Override
    public void close() {
        infrastructure.close();
        gateway.close();
        payloads.close();
        loggerConnections.close();
        upstream.close();
        storage.close();
        store.close();
    }
}
