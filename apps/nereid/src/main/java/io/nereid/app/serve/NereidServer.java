// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.access.AccessControl;
import io.nereid.app.access.AccessSchemes;
import io.nereid.app.console.ConsoleCodec;
import io.nereid.app.controlplane.ControlFlags;
import io.nereid.app.controlplane.ControlPlane;
import io.nereid.app.controlplane.StoredModels;
import io.nereid.app.device.DeviceFlags;
import io.nereid.app.device.ServerDevices;
import io.nereid.app.modelserver.ModelServer;
import io.nereid.app.modelserver.ModelStorageControl;
import io.nereid.app.modelserver.TrainedModelFile;
import io.nereid.app.plugins.InstalledPlugins;
import io.nereid.app.process.Logging;
import io.nereid.app.process.ProgramVersion;
import io.nereid.backend.Backend;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.control.gateway.activator.RevisionEngineView;
import io.nereid.control.local.ServedModel;
import io.nereid.engine.Engine;
import io.nereid.engine.options.EngineOptions;
import io.nereid.explain.ExplainCodec;
import io.nereid.explain.request.ExplainSettings;
import io.nereid.observe.Observability;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.protocols.mlflow.MlflowCodec;
import io.nereid.protocols.openapi.OpenApiCodec;
import io.nereid.protocols.openapi.options.OpenApiOptions;
import io.nereid.protocols.v1.V1Codec;
import io.nereid.protocols.v1.common.V1Options;
import io.nereid.protocols.v2.V2Codec;
import io.nereid.protocols.v2.options.V2Options;
import io.nereid.recording.RequestLogger;
import io.nereid.repository.ManagedModels;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.ServableState;
import io.nereid.spi.Source;
import io.nereid.spi.management.ModelControl;
import io.nereid.storage.Storage;
import io.nereid.tensor.ByteBudget;
import io.nereid.tracing.TraceManager;
import io.nereid.tracing.TraceOptions;
import io.nereid.transport.EventLoops;
import io.nereid.transport.ServerOptions;
import io.nereid.transport.api.ProtocolCodec;
import io.nereid.transport.server.Server;
import java.net.InetSocketAddress;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ExecutorService;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Composes the server from top to bottom: engine, protocol codecs, transport, without a dependency injection framework.
 * Thread-safe; {@link #stop} is called once.
 */
public final class NereidServer {
    /** The service names for which TensorFlow Serving's clients query the gRPC health service. */
    static final Set<String> V1_SERVICES = Set.of(
            "PredictionService",
            "ModelService",
            "tensorflow.serving.PredictionService",
            "tensorflow.serving.ModelService");

    private static final Logger LOG = LoggerFactory.getLogger(NereidServer.class);

    private final Clock clock;
    private final Engine engine;
    private final Server transport;
    private final ExecutorService codecPool;
    private final TraceManager tracing;
    private final RequestLogger recorder;
    private final ModelListReloader lists;
    private final @Nullable EventLoops loops;
    private final @Nullable ControlPlane control;
    private final @Nullable ModelServer models;
    private final @Nullable ModelStorageControl stored;
    private final @Nullable TrainedModelFile trained;
    private final AccessControl access;
    private final @Nullable ServerDevices devices;
    private final @Nullable ConsoleCodec console;
    private final List<ProtocolCodec> codecs;
    private volatile boolean started;

    /**
     * What clients may do. Immutable.
     *
     * @param explicitLoads whether they may load and unload models
     * @param requestLogRoot the directory below which their lists may write request logs; null for none
     * @param metrics whether they may read metrics
     * @param missing repositories without which the server is not ready
     * @param settings writes the options in force as the web console shows them; null for a server without console
     * @param modelStorage how models are loaded by storage URI; null for not at all
     */
    public record ClientRules(
            boolean explicitLoads,
            @Nullable Path requestLogRoot,
            boolean metrics,
            List<Path> missing,
            @Nullable Supplier<String> settings,
            @Nullable StoredModels modelStorage) {
        /** Rules of a server with metrics and without console, all of whose repositories exist. */
        public ClientRules(boolean explicitLoads, @Nullable Path requestLogRoot) {
            this(explicitLoads, requestLogRoot, true, List.of(), null, null);
        }
    }

    public NereidServer(
            EngineOptions engineOptions,
            ServerOptions.Builder listen,
            ByteBudget budget,
            V2Options v2,
            Consumer<V1Options.Builder> v1,
            TraceOptions traces,
            Logging logging,
            AccessControl access,
            ClientRules rules,
            @Nullable ControlFlags controlled) {
        this(
                engineOptions,
                listen,
                budget,
                v2,
                v1,
                traces,
                logging,
                access,
                rules,
                controlled,
                null,
                null,
                new DeviceFlags());
    }

    /**
     * @param served the model of a server that serves no other; null for models of repositories and lists
     * @param payloadLog the log of its requests, as JSON; null for none
     * @param deviceFlags the options about GPUs
     */
    NereidServer(
            EngineOptions engineOptions,
            ServerOptions.Builder listen,
            ByteBudget budget,
            V2Options v2,
            Consumer<V1Options.Builder> v1,
            TraceOptions traces,
            Logging logging,
            AccessControl access,
            ClientRules rules,
            @Nullable ControlFlags controlled,
            @Nullable ServedModel served,
            @Nullable String payloadLog,
            DeviceFlags deviceFlags) {
        this.clock = Clock.system();
        InstalledPlugins plugins = InstalledPlugins.load();
        List<Backend> backends = plugins.backends();
        this.devices = ServerDevices.open(plugins.deviceProviders(), deviceFlags, clock);
        BackendPreparation.begin(engineOptions, backends);
        RequestLogger.check(engineOptions.servedModels());
        ManagedModels placed = new ManagedModels(backends);
        List<Source> sources = new ArrayList<>(engineOptions.sources());
        if (controlled != null || served != null || rules.modelStorage() != null) {
            sources.add(placed);
        }
        this.engine = new Engine(
                engineOptions.toBuilder()
                        .sources(sources)
                        .devices(devices == null ? null : devices.devices())
                        .build(),
                backends,
                plugins.cacheProviders(),
                clock);
        this.recorder = new RequestLogger(engine, clock);
        engine.onConfigured(recorder::configure);
        engine.onState(this::log);
        recorder.allowClientLogs(rules.requestLogRoot());
        this.access = access;
        StoredModels byUri = rules.modelStorage();
        this.stored = byUri == null
                ? null
                : new ModelStorageControl(
                        engine,
                        placed,
                        new Storage(byUri.storage(), clock, plugins.storageProviders()),
                        byUri.file() == null);
        Path list = byUri == null ? null : byUri.file();
        this.trained = stored == null || list == null ? null : new TrainedModelFile(list, stored, clock);
        ModelControl clients = new ClientModelControl(
                stored == null ? engine : stored, recorder, rules.explicitLoads(), rules.missing());
        InferenceEngine guarded = access.guard(recorder);
        this.lists = new ModelListReloader(engine);
        this.codecPool = Threads.pool("codec", Math.max(1, Runtime.getRuntime().availableProcessors() / 2));
        this.tracing = new TraceManager(traces, clock);
        Observability observation = new CompositeObservability(engine, tracing, logging);
        V1Options.Builder first = V1Options.builder(clock)
                .extraMetrics(page -> TfServingMetricsWriter.write(page, recorder.counts()))
                .queueDepths(engine::waiting);
        v1.accept(first);
        V1Options options = first.build();
        List<ProtocolCodec> protocols = new ArrayList<>(List.of(
                new V2Codec(
                        guarded,
                        clients,
                        observation,
                        clock,
                        codecPool,
                        v2,
                        devices == null ? null : devices.shareable()),
                new V1Codec(guarded, clients, codecPool, options),
                new ExplainCodec(guarded, codecPool, clock, ExplainSettings.none()),
                new MlflowCodec(guarded, clients, codecPool, ProgramVersion.number()),
                new AdminCodec(
                        engine,
                        new ModelListReloader(clients),
                        this::stats,
                        budget,
                        rules.metrics(),
                        rules.settings() != null,
                        codecPool,
                        this::moreMetrics)));
        if (controlled != null) {
            this.loops = new EventLoops(listen.build().eventLoops(), true);
            this.control = new ControlPlane(
                    controlled,
                    clock,
                    plugins.storageProviders(),
                    placed,
                    recorder,
                    engine,
                    (view, views) -> serviceCodecs(view, views, v2, options),
                    () -> devices == null ? List.of() : devices.forServices(),
                    codecPool,
                    loops);
            this.models = null;
            listen.virtualHosts(control.hosts()).loops(loops);
        } else if (served != null) {
            this.loops = new EventLoops(listen.build().eventLoops(), true);
            this.control = null;
            this.models = new ModelServer(
                    served,
                    clock,
                    placed,
                    recorder,
                    engine,
                    (view, views) -> modelCodecs(access.guard(view), views, v2, options),
                    codecPool,
                    loops,
                    payloadLog);
            listen.virtualHosts(models.hosts()).loops(loops);
        } else {
            this.loops = null;
            this.control = null;
            this.models = null;
        }
        this.console = rules.settings() == null
                ? null
                : new ConsoleCodec(
                        engine,
                        this::stats,
                        AdminCodec::residentBytes,
                        access.sessions(),
                        recorder::files,
                        codecPool,
                        clock,
                        rules.explicitLoads(),
                        rules.settings(),
                        control == null ? null : control.route());
        if (console != null) {
            protocols.add(console);
        }
        this.codecs = described(guarded, List.copyOf(protocols));
        this.transport = new Server(
                listen.clock(clock)
                        .budget(budget)
                        .access(access)
                        .codecExecutor(codecPool)
                        .build(),
                codecs);
        if (models != null) {
            models.hostFactory(transport);
        }
    }

    /** Logs what is loaded and unloaded while the server runs; what it starts with is in the table of the start. */
    private void log(ServableState state) {
        if (!started) {
            return;
        }
        if (state.phase() == ServableState.Phase.AVAILABLE) {
            LOG.info(
                    "model '{}' version {} is available, loaded in {} ms",
                    state.id().model(),
                    state.id().version(),
                    state.loadNanos() / 1_000_000);
        } else if (state.phase() == ServableState.Phase.GONE) {
            LOG.info(
                    "model '{}' version {} is unloaded",
                    state.id().model(),
                    state.id().version());
        }
    }

    /** Protocols with the documents that describe them. */
    private List<ProtocolCodec> described(InferenceEngine models, List<ProtocolCodec> protocols) {
        return OpenApiCodec.added(
                protocols,
                models,
                codecPool,
                OpenApiOptions.of(ProgramVersion.number())
                        .withAccess(new AccessSchemes(access))
                        .withExplainable(ExplainCodec::explains));
    }

    private io.nereid.transport.TransportStats stats() {
        return transport.stats();
    }

    /** The protocols of a service of the control plane. */
    private List<ProtocolCodec> codecsOf(InferenceEngine view, ModelControl views, V2Options v2, V1Options v1) {
        return List.of(
                new V2Codec(view, views, Observability.NONE, clock, codecPool, v2),
                new V1Codec(view, views, codecPool, v1),
                new ExplainCodec(view, codecPool, clock, ExplainSettings.none()));
    }

    /** The protocols of a service of the control plane, with the pages of its host. */
    private List<ProtocolCodec> serviceCodecs(InferenceEngine view, ModelControl views, V2Options v2, V1Options v1) {
        List<ProtocolCodec> all = new ArrayList<>(codecsOf(access.guard(view), views, v2, v1));
        all.add(new ServicePages(
                engine::writeMetrics,
                model -> view instanceof RevisionEngineView revision && revision.owns(model),
                codecPool));
        return described(view, all);
    }

    /** The protocols of a server of one model. */
    private List<ProtocolCodec> modelCodecs(InferenceEngine view, ModelControl views, V2Options v2, V1Options v1) {
        List<ProtocolCodec> all = new ArrayList<>(codecsOf(view, views, v2, v1));
        all.add(new MlflowCodec(view, views, codecPool, ProgramVersion.number()));
        return described(view, all);
    }

    /** Whether every address that the server listens on is a loopback address or a Unix domain socket. */
    boolean isLocal() {
        return transport.isLocal();
    }

    private void moreMetrics(MetricsWriter page) {
        access.writeMetrics(page);
        if (devices != null) {
            devices.writeMetrics(page);
        }
        if (control != null) {
            control.writeMetrics(page);
        }
        if (models != null) {
            models.writeMetrics(page);
        }
    }

    Engine engine() {
        return engine;
    }

    /** The protocols whose routes and gRPC methods the server's ports serve. */
    List<ProtocolCodec> codecs() {
        return codecs;
    }

    /** Opens the ports, before models are loaded. */
    public List<InetSocketAddress> listen() {
        return transport.start();
    }

    /** Opens the control API, if it is enabled, while models load. Returns its port, or 0. */
    int control(List<InetSocketAddress> addresses) {
        if (control == null) {
            return 0;
        }
        control.start(transport, addresses);
        return control.port();
    }

    /** Starts loading; completes when every model is available or has failed. */
    public CompletionStage<Void> load() {
        ModelServer own = models;
        CompletionStage<Void> loaded =
                own == null ? engine.start() : engine.start().thenCompose(available -> own.load());
        TrainedModelFile file = trained;
        if (file != null) {
            loaded = loaded.thenCompose(available -> file.start());
        }
        return loaded.whenComplete((available, e) -> started = true);
    }

    /** Polls a model list, and applies its changes. */
    void follow(Path file, Duration interval) {
        lists.follow(file, interval);
    }

    /**
     * Begins the end while everything is still served: HTTP/1.1 responses close their connections, so that clients with
     * requests reconnect, through their load balancer, to servers that stay. Without it a connection that is idle for a
     * moment would be closed under the client's next request.
     */
    public void announceDrain() {
        transport.announceDrain();
    }

    /**
     * Drains and stops the server. Readiness turns false at once. While requests are in progress, for at most half of
     * the limit, the ports stay open, so that load balancers see the failed readiness and the requests that they still
     * send are served. Then no new connections are accepted, and the requests in progress get the remaining time.
     *
     * @return whether all requests finished within the limit
     */
    public boolean stop(Duration limit) {
        if (control != null) {
            control.beginDrain();
        }
        if (stored != null) {
            stored.beginDrain();
        }
        engine.beginDrain();
        if (console != null) {
            console.close(); // its streams have no end of their own
        }
        boolean drained = transport.drain(limit.dividedBy(2), () -> stats().inFlight() > 0, limit);
        transport.close();
        if (control != null) {
            control.close();
        }
        if (models != null) {
            models.close();
        }
        lists.close();
        if (trained != null) {
            trained.close();
        }
        if (stored != null) {
            stored.close();
        }
        engine.close(limit);
        recorder.close();
        codecPool.shutdown();
        tracing.close();
        access.close();
        if (devices != null) {
            devices.close();
        }
        if (loops != null) {
            loops.close();
        }
        return drained;
    }
}
