// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import io.nereid.backend.BackendModel;
import io.nereid.backend.CacheStoreProvider;
import io.nereid.backend.ModelLocation;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.engine.cache.ResponseCache;
import io.nereid.engine.cache.VersionResponseCache;
import io.nereid.engine.execution.InstancePlacements;
import io.nereid.engine.options.CacheOptions;
import io.nereid.engine.options.EngineOptions;
import io.nereid.engine.options.WarmupOptions;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.repository.config.ModelConfigDocument;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.admission.AdmissionControl;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.RateLimiter;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.EnsembleScheduling;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import org.jspecify.annotations.Nullable;

/**
 * Creates the servables, with the thread pools and caches that they share, and keeps the list of those whose metrics
 * are shown. Thread-safe.
 */
public final class ServableFactory {
    private final DeviceExecutor pool;
    private final DeviceExecutor waiting;
    private final HostPolicyExecutors pools;
    private final EngineOptions options;
    private final SchedulerOptions scheduling;
    private final AdmissionControl admission;
    private final Clock clock;
    private final BatchingDefaults batching;
    private final @Nullable ResponseCache cache;
    private final Set<EngineServable> registered = ConcurrentHashMap.newKeySet();

    /** @param caches the external response caches that the options may name */
    public ServableFactory(DeviceExecutor pool, EngineOptions options, List<CacheStoreProvider> caches, Clock clock) {
        this.pool = pool;
        this.waiting = DeviceExecutor.forWaitingRuns("waiting", clock);
        this.pools = new HostPolicyExecutors(pool, options.hostPolicies(), options.deviceThreads(), clock);
        this.options = options;
        this.batching =
                new BatchingDefaults(options.batching(), options.perModelBatching(), options.splitUnconfigured());
        this.clock = clock;
        CacheOptions named = options.cache();
        this.cache = named == null ? null : ResponseCache.open(named.name(), named.settings(), caches, clock);
        List<RateLimiter.Total> totals = options.rateLimits();
        // Without a target only models with a latency objective refuse requests.
        this.admission = options.overloadTarget().isZero()
                ? new AdmissionControl(null)
                : AdmissionControl.overload(options.overloadTarget());
        this.scheduling = new SchedulerOptions(options.maxQueueSize(), InlinePolicy.MEASURED)
                .withLimiter(totals == null ? null : new RateLimiter(totals))
                .delayed(options.delays().scheduler(), options.delays().backlog())
                .withAdmission(admission);
    }

    private static byte[] initialState(ModelLocation source, String file) {
        Path directory = source.modelDirectory().resolve("initial_state");
        Path path = directory.resolve(file).normalize();
        try {
            if (path.startsWith(directory)) {
                return Files.readAllBytes(path);
            }
        } catch (IOException e) {
            // reported below
        }
        throw ServingException.invalidArgument(
                "initial state file '" + file + "' of model '" + source.id().model() + "' cannot be read",
                "put it into " + directory);
    }

    /** Creates the servable of a loaded model. When this method throws, the caller keeps the model. */
    public ModelServable create(ModelLocation source, BackendModel model) {
        DeviceExecutor computing = pools.of(model.config());
        DeviceExecutor own = model.traits().blocking() ? waiting : computing;
        SchedulerOptions scheduler = scheduling.withStrategy(CustomBatchStrategy.find(source, model.config()));
        if (own != pool) {
            scheduler = scheduler.withInline(InlinePolicy.NEVER);
        } else if (model.traits().inline()) {
            scheduler = scheduler.withInline(InlinePolicy.ALWAYS);
        }
        return ModelServable.of(
                source.id(),
                model,
                completed(model.config()),
                statistics(source.id(), model.config()),
                own,
                scheduler,
                file -> initialState(source, file),
                new InstancePlacements(model.config(), options.devices()),
                clock);
    }

    /** Creates empty statistics for a version. */
    public ModelStatistics statistics(ServableId id, ModelConfig config) {
        return new ModelStatistics(id, config, options.metrics(), clock);
    }

    /** Returns a complete configuration, including its document. */
    public ModelConfig completed(ModelConfig config) {
        ModelConfig named = config.modelFile().isEmpty()
                ? config.toBuilder().modelFile(defaultFile(config)).build()
                : config;
        return config.toBuilder().document(ModelConfigDocument.lazy(named)).build();
    }

    /** The file name that Triton adds to the configuration of a model without one. */
    private static String defaultFile(ModelConfig config) {
        return switch (config.backend()) {
            case "onnxruntime" -> "model.onnx";
            case "python" -> "model.py";
            case "pytorch" -> "model.pt";
            case "tensorflow" ->
                config.platform().equals("tensorflow_graphdef") ? "model.graphdef" : "model.savedmodel";
            default -> "";
        };
    }

    /** The batching of models whose configuration does not define it. */
    public BatchingDefaults batching() {
        return batching;
    }

    /** Returns whether a model refuses requests at the moment because it is overloaded. */
    public boolean refuses() {
        return admission.refuses();
    }

    /** The settings for recorded warm-up requests. */
    public WarmupOptions warmup() {
        return options.warmup();
    }

    public Clock clock() {
        return clock;
    }

    /** Registers a version that becomes available, and enables its response cache. */
    public void register(EngineServable servable, String fingerprint) {
        if (cache != null) {
            keep(servable, fingerprint, cache);
            // requests to different signatures must not share cache entries
            servable.signatures().forEach((name, other) -> keep(other, fingerprint + " signature " + name, cache));
        }
        registered.add(servable);
    }

    private static void keep(EngineServable servable, String fingerprint, ResponseCache cache) {
        ModelStatistics statistics = servable.statistics();
        servable.cache(cache.of(servable.metadata().id(), servable.config(), fingerprint, statistics::cacheMissed));
    }

    /** Removes a version that is no longer available. */
    public void unregister(EngineServable servable) {
        registered.remove(servable);
        forget(servable);
        servable.signatures().values().forEach(ServableFactory::forget);
    }

    private static void forget(EngineServable servable) {
        VersionResponseCache keeps = servable.cache();
        servable.cache(null);
        if (keeps != null) {
            keeps.close();
        }
    }

    /** Statistics of the response cache by name. */
    public Map<String, Long> cacheStatistics() {
        return cache == null ? Map.of() : cache.statistics();
    }

    /** Closes the response cache and the thread pools; no version is available any more. */
    public void close() {
        pools.close();
        waiting.close();
        if (cache != null) {
            cache.close();
        }
    }

    /** Returns whether an available ensemble with a model allows batches of more than so many rows. */
    public boolean inLargerEnsemble(String model, int rows) {
        return registered.stream().map(EngineServable::config).anyMatch(config -> {
            EnsembleScheduling ensemble = config.ensemble();
            return ensemble != null
                    && config.maxBatchSize() > rows
                    && ensemble.steps().stream().anyMatch(step -> step.model().equals(model));
        });
    }

    /** The registered versions, by name and version. */
    public Collection<EngineServable> registered() {
        List<EngineServable> all = new ArrayList<>(registered);
        all.sort(Comparator.comparing(s -> s.metadata().id()));
        return all;
    }
}
