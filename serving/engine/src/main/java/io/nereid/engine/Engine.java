// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.CacheStoreProvider;
import io.nereid.backend.ModelLocation;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.Experimental;
import io.nereid.base.ServingException;
import io.nereid.engine.cache.ResponseCache;
import io.nereid.engine.ensemble.ComposingModels;
import io.nereid.engine.ensemble.EnsembleLoader;
import io.nereid.engine.loading.ModelLoader;
import io.nereid.engine.metrics.EngineMetrics;
import io.nereid.engine.metrics.HostMetrics;
import io.nereid.engine.options.BackendSettings;
import io.nereid.engine.options.EngineOptions;
import io.nereid.engine.servable.EngineServable;
import io.nereid.engine.servable.RequestSubmitter;
import io.nereid.engine.servable.ServableFactory;
import io.nereid.engine.servable.ShadowTraffic;
import io.nereid.engine.servable.StepSubmitter;
import io.nereid.engine.source.ModelSources;
import io.nereid.lifecycle.ManagerOptions;
import io.nereid.lifecycle.ServableHandle;
import io.nereid.lifecycle.ServableManager;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.observe.RequestSamples;
import io.nereid.observe.metrics.MetricsFormat;
import io.nereid.observe.metrics.MetricsWriter;
import io.nereid.repository.polling.LoaderFactory;
import io.nereid.repository.tfserving.BatchingParameters;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.Loader;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.management.LoadOptions;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelListChange;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.spi.management.ModelStatus;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/**
 * An embeddable model server without a network: model repositories, the lifecycle of versions, request queues and
 * backends behind the two interfaces {@link InferenceEngine} and {@link ModelControl}. The server application puts
 * protocols in front of this class; an application can also embed it directly. Thread-safe.
 *
 * <p>The engine owns its threads, the models and its sources, and frees them in {@link #close}. It does not own the
 * backends. A request's inputs belong to the engine from {@link #infer} on; the outputs of a response belong to the
 * sink, which closes the response. Tensor shapes include the batch dimension where the model is batched.
 *
 * <pre>{@code
 * List<Backend> backends = ServiceLoader.load(Backend.class).stream().map(ServiceLoader.Provider::get).toList();
 * try (Engine engine = new Engine(EngineOptions.of(Path.of("models")), backends, Clock.system())) {
 *     engine.start().toCompletableFuture().join();               // until every model is available or has failed
 *
 *     Tensor input = Tensor.allocate("INPUT0", DataType.FP32, Shape.of(1, 4));
 *     input.buffer().putFloat(5.1f).putFloat(3.5f).putFloat(1.4f).putFloat(0.2f);
 *     CompletableFuture<InferenceResponse> done = new CompletableFuture<>();
 *     engine.infer(
 *             new InferenceRequest(
 *                     ModelRef.latest("iris"), "", List.of(input), List.of(), Map.of(), Long.MAX_VALUE,
 *                     Clock.system().nanos()),
 *             new ResponseSink() {
 *                 public void next(InferenceResponse response, boolean last) {
 *                     done.complete(response);
 *                 }
 *
 *                 public void fail(ServingException e) {
 *                     done.completeExceptionally(e);             // e.code() is NOT_FOUND, INVALID_ARGUMENT, ...
 *                 }
 *             });
 *     try (InferenceResponse response = done.join()) {
 *         float score = response.outputs().get(0).buffer().getFloat();
 *     }
 * }
 * }</pre>
 */
@Experimental
public final class Engine implements InferenceEngine, ModelControl, AutoCloseable {
    private final EngineOptions options;
    private final List<Backend> backends;
    private final BackendSettings settings;
    private final DeviceExecutor pool;
    private final ServableFactory servables;
    private final ServableManager manager;
    private final ModelSources sources;
    private final RequestSubmitter submitter;
    private final ShadowTraffic shadows;
    /** Submits the steps of ensembles; null on a server without GPUs. */
    private final @Nullable StepSubmitter steps;

    private final ComposingModels members = new Members();
    private final HostMetrics host = new HostMetrics();
    private final boolean strictReadiness;
    private volatile boolean started;
    private volatile boolean draining;

    /**
     * Creates the components; nothing runs before {@link #start}. External response caches are those on the class path.
     *
     * @param options the settings
     * @param backends the available backends, each with a unique name
     * @param clock the time source
     * @throws ServingException INVALID_ARGUMENT for an invalid response cache or host policy, FAILED_PRECONDITION for
     *     a host policy that this machine does not support
     */
    public Engine(EngineOptions options, List<Backend> backends, Clock clock) {
        this(options, backends, ResponseCache.onClassPath(), clock);
    }

    /**
     * As {@link #Engine(EngineOptions, List, Clock)}, with other external response caches.
     *
     * @param caches the available external response caches, each with a unique name
     */
    public Engine(EngineOptions options, List<Backend> backends, List<CacheStoreProvider> caches, Clock clock) {
        this.backends = List.copyOf(backends);
        this.options = options;
        this.settings = new BackendSettings(options.backendSettings(), backends);
        this.strictReadiness = options.strictReadiness();
        BatchingParameters batching = options.batching();
        int threads = batching == null || batching.numBatchThreads() == 0
                ? options.deviceThreads()
                : batching.numBatchThreads();
        this.pool = new DeviceExecutor("device", threads, clock);
        this.servables = new ServableFactory(pool, options, caches, clock);
        this.manager = new ServableManager(
                ManagerOptions.DEFAULT
                        .withLoadThreads(options.loadThreads())
                        .withMemoryLimitBytes(options.memoryLimitBytes())
                        .withInitialLoadThreads(options.initialLoadThreads())
                        .withPolicy(options.aspiredVersionPolicy())
                        .withRetries(options.loadRetries(), options.loadRetryInterval()),
                clock);
        this.submitter = new RequestSubmitter(clock);
        this.shadows = new ShadowTraffic(manager, submitter);
        this.steps = options.devices() == null ? null : new StepSubmitter(this, manager, submitter, options.devices());
        this.sources = new ModelSources(options, backends, new Loaders(), servables, manager, clock);
    }

    /** Creates the loaders of stored versions. */
    private final class Loaders implements LoaderFactory {
        private final Map<String, Map<String, String>> settingsByBackend = backends.stream()
                .collect(Collectors.toUnmodifiableMap(Backend::name, b -> settings.of(b.name()), (a, b) -> a));

        @Override
        public Loader create(ModelLocation source, ModelConfig config, Backend backend, String fingerprint) {
            return new ModelLoader(
                    source,
                    config,
                    backend,
                    fingerprint,
                    new BackendContext(
                            options.deviceThreads(),
                            options.scratch(),
                            settings.of(backend.name()),
                            options.autoComplete(),
                            Engine.this,
                            Engine.this,
                            backends,
                            settingsByBackend,
                            options.memoryLimitBytes() <= 0,
                            options.devices()),
                    servables);
        }

        @Override
        public Loader ensemble(ModelLocation source, ModelConfig config, String fingerprint) {
            return new EnsembleLoader(source.id(), config, fingerprint, members, servables);
        }
    }

    /** Gives ensembles access to the models of this engine. */
    private final class Members implements ComposingModels {
        @Override
        public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
            StepSubmitter onDevices = steps;
            return onDevices == null ? Engine.this.infer(request, sink) : onDevices.infer(request, sink);
        }

        @Override
        public boolean takesDeviceTensors(ModelRef member, int device) {
            StepSubmitter onDevices = steps;
            return onDevices != null && onDevices.takesDeviceTensors(member, device);
        }

        @Override
        public boolean refuse() {
            return servables.refuses();
        }

        @Override
        public @Nullable ServingException refusal(ModelRef member, InferenceJob job) {
            try (ServableHandle handle = manager.acquire(member)) {
                return ((EngineServable) handle.servable()).refusal(job);
            } catch (ServingException e) {
                // The version is being replaced or is gone: the step will say so.
                return null;
            }
        }

        @Override
        public ModelConfig config(ModelRef member) {
            return Engine.this.config(member);
        }

        @Override
        public List<ServableState> states(String member) {
            return manager.states(member);
        }
    }

    /**
     * Starts all sources and loads their models. Completes when each model is available or has failed; the stage
     * itself never fails.
     */
    public CompletionStage<Void> start() {
        sources.start();
        CompletableFuture<Void> settled = new CompletableFuture<>();
        manager.settled(sources.names()).whenComplete((states, e) -> {
            started = true;
            settled.complete(null);
        });
        return settled;
    }

    /**
     * Registers a listener for the model list: called with the initial list and with every new list once it is in
     * effect, on the thread that applies it. Must be called before {@link #start}.
     */
    public void onConfigured(Consumer<List<ModelListEntry>> listener) {
        sources.modelList().onConfigured(listener);
    }

    /**
     * Registers a listener for every state transition of every version. Called on the manager's thread, so it must
     * return at once.
     */
    public void onState(Consumer<ServableState> listener) {
        manager.listen(listener);
    }

    @Override
    public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        ServableHandle handle;
        try {
            handle = manager.acquire(request.model());
        } catch (ServingException e) {
            request.release();
            sink.fail(e);
            return RequestSubmitter.ENDED;
        }
        if (request.model().label() != null) {
            return shadows.submit(handle, request, sink);
        }
        return submitter.submit((EngineServable) handle.servable(), handle, request, sink);
    }

    @Override
    public ModelMetadata metadata(ModelRef model) {
        try (ServableHandle handle = manager.acquire(model)) {
            return handle.servable().metadata();
        }
    }

    @Override
    public ModelConfig config(ModelRef model) {
        try (ServableHandle handle = manager.acquire(model)) {
            return handle.servable().config();
        }
    }

    @Override
    public boolean live() {
        return true;
    }

    @Override
    public boolean ready() {
        return started && !draining && (!strictReadiness || manager.ready());
    }

    @Override
    public boolean ready(ModelRef model) {
        if (!manager.ready(model) || draining) {
            return false;
        }
        try (ServableHandle handle = manager.acquire(model)) {
            return !(handle.servable() instanceof EngineServable servable) || servable.ready();
        } catch (ServingException e) {
            // the version was unloaded after the first check
            return false;
        }
    }

    @Override
    public List<ModelStatus> index() {
        Map<String, ModelStatus> byName = new TreeMap<>();
        for (String name : sources.names()) {
            byName.put(name, new ModelStatus(name, List.of()));
        }
        for (ModelStatus status : manager.index()) {
            byName.put(status.model(), status);
        }
        return new ArrayList<>(byName.values());
    }

    @Override
    public CompletionStage<Void> load(String model, LoadOptions options) {
        if (options.storageUri() != null) {
            return CompletableFuture.failedStage(ServingException.of(
                    ErrorCode.PERMISSION_DENIED,
                    "model '" + model + "' is not loaded: clients may not name storage URIs to this server",
                    "start it with --allow-model-storage, or load a model of its repository"));
        }
        return sources.load(model, options);
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return sources.unload(model, dependents);
    }

    @Override
    public CompletionStage<List<ModelListChange>> configure(List<ModelListEntry> models, boolean dryRun) {
        return sources.modelList().configure(models, dryRun);
    }

    /** Returns the metrics of all models in the Prometheus text format 0.0.4. */
    public String metrics() {
        return MetricsWriter.page(MetricsFormat.TEXT, this::writeMetrics);
    }

    /** Adds the metrics of all models to a page. */
    public void writeMetrics(MetricsWriter page) {
        new EngineMetrics(page, servables.registered(), options.metrics())
                .write(host, servables.cacheStatistics(), shadows, manager.memoryBytes(), manager.memoryLimit());
    }

    /** Returns the number of queued requests by model, for models with an available version. */
    public Map<String, Long> waiting() {
        Map<String, Long> waiting = new TreeMap<>();
        for (EngineServable servable : servables.registered()) {
            waiting.merge(servable.metadata().id().model(), (long) servable.queued(), Long::sum);
        }
        return waiting;
    }

    /**
     * Returns the statistics of the available versions.
     *
     * @param model one model, or null for all models
     * @param version one version, or -1 for all versions
     * @throws ServingException INVALID_ARGUMENT for a model or version that is not available
     */
    public List<ModelStatisticsSnapshot> statistics(@Nullable String model, long version) {
        return available(model, version).stream().map(EngineServable::report).toList();
    }

    /**
     * Samples of the slow and the failed requests of a model's available versions.
     *
     * @param version one version, or -1 for all versions
     * @throws ServingException INVALID_ARGUMENT for a model or version that is not available
     */
    public List<RequestSamples> requestSamples(String model, long version) {
        return available(model, version).stream()
                .map(servable ->
                        servable.statistics().slow.samples(servable.metadata().id()))
                .toList();
    }

    private List<EngineServable> available(@Nullable String model, long version) {
        List<EngineServable> found = new ArrayList<>();
        boolean known = false;
        for (EngineServable servable : servables.registered()) {
            ServableId id = servable.metadata().id();
            if ((model == null || model.equals(id.model())) && answers(id)) {
                known = true;
                if (version < 0 || version == id.version()) {
                    found.add(servable);
                }
            }
        }
        if (model != null && found.isEmpty()) {
            throw ServingException.invalidArgument(
                    known
                            ? "requested model version is not available for model '" + model + "'"
                            : "requested model '" + model + "' is not available");
        }
        return found;
    }

    /**
     * Reads from the disk what a repository holds of a model, loaded or not. Blocks.
     *
     * @return null for a model that is not in a repository
     */
    public @Nullable ModelFiles files(String model) {
        return ModelFiles.read(sources.repository(), model);
    }

    /** Returns what every loaded version does at this moment, those that are being loaded or unloaded too. */
    public List<ModelActivity> activity() {
        return servables.registered().stream().map(ModelActivity::of).toList();
    }

    private boolean answers(ServableId id) {
        try {
            return manager.ready(ModelRef.exact(id.model(), id.version()));
        } catch (ServingException gone) {
            return false;
        }
    }

    /**
     * Makes {@link #ready()} return false while requests are still served, so that load balancers stop sending
     * requests before {@link #close}.
     */
    public void beginDrain() {
        draining = true;
    }

    /**
     * Shuts the engine down: accepts no new requests, waits up to {@code limit} for the requests in flight, then
     * unloads all models.
     */
    public void close(Duration limit) {
        draining = true;
        sources.close();
        shadows.close();
        manager.close(limit);
        pool.close();
        servables.close();
    }

    @Override
    public void close() {
        close(Duration.ofSeconds(30));
    }
}
