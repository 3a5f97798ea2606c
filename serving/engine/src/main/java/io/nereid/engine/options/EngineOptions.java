// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.options;

import io.nereid.device.Devices;
import io.nereid.lifecycle.policy.AspiredVersionPolicy;
import io.nereid.lifecycle.policy.LabelAssignmentPolicy;
import io.nereid.repository.FileSystemStoragePathSource;
import io.nereid.repository.RepositorySource;
import io.nereid.repository.tfserving.BatchingParameters;
import io.nereid.scheduling.execution.RateLimiter;
import io.nereid.spi.Source;
import io.nereid.spi.management.ModelListEntry;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Settings of an engine. Immutable. Created by {@link #builder} or {@link #toBuilder}.
 *
 * <pre>{@code
 * EngineOptions options = EngineOptions.builder(List.of(Path.of("models")))
 *         .deviceThreads(8)
 *         .maxQueueSize(1_000)
 *         .cache(new EngineOptions.Cache("local", Map.of("size", "104857600")))
 *         .build();
 * }</pre>
 *
 * @param repositories model repositories, or the directory or file of a single model
 * @param repository when and how the repositories are read
 * @param deviceThreads number of threads that run models
 * @param loadThreads number of models that may load at once
 * @param maxQueueSize the most requests that may wait for a model whose configuration sets no limit
 * @param memoryLimitBytes limit of the estimated memory of all models; 0 for no limit
 * @param scratch directory for temporary files of backends, such as extracted native libraries
 * @param backendSettings server-wide settings by backend name; the empty name applies to all backends
 * @param autoComplete whether backends may fill in what a configuration leaves out
 * @param metrics optional metrics
 * @param rateLimits enables the rate limiter when not null: the explicitly named resource totals, perhaps none
 * @param hostPolicies settings of CPU and memory-node affinity by host policy name
 * @param cache the response cache; null for none
 * @param delays delayed start of queues, for tests
 * @param loadRetries how often a failed load is retried
 * @param strictReadiness whether the server is ready only when every aspired model is available
 * @param servedModels the model list, in addition to the repositories; a later list replaces it
 * @param modelListSource how the base paths of the model list are polled
 * @param sources further sources of models, which the engine starts and closes. A model that several sources provide
 *     is served from the first of: the model list, the repositories, these sources in order
 * @param batching batching parameters for every model whose configuration has none; null for the models' defaults
 * @param perModelBatching whether {@code batching_params.pbtxt} in a version's directory replaces {@code batching}; a
 *     model without that file is not batched
 * @param warmup how the recorded warm-up requests of a version run
 * @param loadRetryInterval the time between two attempts to load
 * @param initialLoadThreads number of models that may load at once at the start, if larger than {@code loadThreads}; 0
 *     for {@code loadThreads}
 * @param aspiredVersionPolicy the order of loading and unloading when versions change
 * @param labelAssignmentPolicy when the model list may assign a label to a version that is not available
 * @param reloadTimeout how long a new model list waits for its models before it reports
 * @param overloadTarget the longest time that a request should take while a model is overloaded, for models whose
 *     configuration does not limit their queue; zero to refuse nothing before {@code maxQueueSize}
 * @param splitUnconfigured whether requests with more rows than the default batch size of a backend are split, for
 *     stateless models without a configuration, whose batch size no operator set; else they are refused
 * @param devices the GPUs that models may run on, owned by the caller, which closes them after the engine; null for none
 */
public record EngineOptions(
        List<Path> repositories,
        RepositorySource.Options repository,
        int deviceThreads,
        int loadThreads,
        int maxQueueSize,
        long memoryLimitBytes,
        Path scratch,
        Map<String, Map<String, String>> backendSettings,
        boolean autoComplete,
        MetricsOptions metrics,
        @Nullable List<RateLimiter.Total> rateLimits,
        Map<String, Map<String, String>> hostPolicies,
        @Nullable CacheOptions cache,
        DelayOptions delays,
        int loadRetries,
        boolean strictReadiness,
        List<ModelListEntry> servedModels,
        FileSystemStoragePathSource.Options modelListSource,
        List<Source> sources,
        @Nullable BatchingParameters batching,
        boolean perModelBatching,
        WarmupOptions warmup,
        Duration loadRetryInterval,
        int initialLoadThreads,
        AspiredVersionPolicy aspiredVersionPolicy,
        LabelAssignmentPolicy labelAssignmentPolicy,
        Duration reloadTimeout,
        Duration overloadTarget,
        boolean splitUnconfigured,
        @Nullable Devices devices) {
    /** Options without GPUs. */
    public EngineOptions(
            List<Path> repositories,
            RepositorySource.Options repository,
            int deviceThreads,
            int loadThreads,
            int maxQueueSize,
            long memoryLimitBytes,
            Path scratch,
            Map<String, Map<String, String>> backendSettings,
            boolean autoComplete,
            MetricsOptions metrics,
            @Nullable List<RateLimiter.Total> rateLimits,
            Map<String, Map<String, String>> hostPolicies,
            @Nullable CacheOptions cache,
            DelayOptions delays,
            int loadRetries,
            boolean strictReadiness,
            List<ModelListEntry> servedModels,
            FileSystemStoragePathSource.Options modelListSource,
            List<Source> sources,
            @Nullable BatchingParameters batching,
            boolean perModelBatching,
            WarmupOptions warmup,
            Duration loadRetryInterval,
            int initialLoadThreads,
            AspiredVersionPolicy aspiredVersionPolicy,
            LabelAssignmentPolicy labelAssignmentPolicy,
            Duration reloadTimeout,
            Duration overloadTarget,
            boolean splitUnconfigured) {
        this(
                repositories,
                repository,
                deviceThreads,
                loadThreads,
                maxQueueSize,
                memoryLimitBytes,
                scratch,
                backendSettings,
                autoComplete,
                metrics,
                rateLimits,
                hostPolicies,
                cache,
                delays,
                loadRetries,
                strictReadiness,
                servedModels,
                modelListSource,
                sources,
                batching,
                perModelBatching,
                warmup,
                loadRetryInterval,
                initialLoadThreads,
                aspiredVersionPolicy,
                labelAssignmentPolicy,
                reloadTimeout,
                overloadTarget,
                splitUnconfigured,
                null);
    }

    /** Options for one repository that is read once, with one thread per processor. */
    public static EngineOptions of(Path repository) {
        return builder(List.of(repository)).build();
    }

    /** Creates a builder with the default settings for these repositories. */
    public static Builder builder(List<Path> repositories) {
        return new Builder(repositories);
    }

    /** Creates a builder that starts with these settings. */
    public Builder toBuilder() {
        return new Builder(repositories)
                .repository(repository)
                .deviceThreads(deviceThreads)
                .loadThreads(loadThreads)
                .maxQueueSize(maxQueueSize)
                .memoryLimitBytes(memoryLimitBytes)
                .scratch(scratch)
                .backendSettings(backendSettings)
                .autoComplete(autoComplete)
                .metrics(metrics)
                .rateLimits(rateLimits)
                .hostPolicies(hostPolicies)
                .cache(cache)
                .delays(delays)
                .loadRetries(loadRetries)
                .strictReadiness(strictReadiness)
                .servedModels(servedModels)
                .modelListSource(modelListSource)
                .sources(sources)
                .batching(batching)
                .perModelBatching(perModelBatching)
                .warmup(warmup)
                .loadRetryInterval(loadRetryInterval)
                .initialLoadThreads(initialLoadThreads)
                .aspiredVersionPolicy(aspiredVersionPolicy)
                .labelAssignmentPolicy(labelAssignmentPolicy)
                .reloadTimeout(reloadTimeout)
                .overloadTarget(overloadTarget)
                .splitUnconfigured(splitUnconfigured)
                .devices(devices);
    }

    /** Builds options. Every setter replaces the previous value and returns the builder. Confined to one thread. */
    public static final class Builder {
        private final List<Path> repositories;
        private RepositorySource.Options repository = RepositorySource.Options.DEFAULT;
        private int deviceThreads = Runtime.getRuntime().availableProcessors();
        private int loadThreads = 4;
        private int maxQueueSize = 10_000;
        private long memoryLimitBytes;
        private Path scratch = Path.of(System.getProperty("java.io.tmpdir"));
        private Map<String, Map<String, String>> backendSettings = Map.of();
        private boolean autoComplete = true;
        private MetricsOptions metrics = MetricsOptions.DEFAULT;
        private @Nullable List<RateLimiter.Total> rateLimits;
        private Map<String, Map<String, String>> hostPolicies = Map.of();
        private @Nullable CacheOptions cache;
        private DelayOptions delays = DelayOptions.NONE;
        private int loadRetries;
        private boolean strictReadiness = true;
        private List<ModelListEntry> servedModels = List.of();
        private FileSystemStoragePathSource.Options modelListSource = FileSystemStoragePathSource.Options.DEFAULT;
        private List<Source> sources = List.of();
        private @Nullable BatchingParameters batching;
        private boolean perModelBatching;
        private WarmupOptions warmup = WarmupOptions.DEFAULT;
        private Duration loadRetryInterval = Duration.ofSeconds(1);
        private int initialLoadThreads;
        private AspiredVersionPolicy aspiredVersionPolicy = AspiredVersionPolicy.ALL_OR_NOTHING;
        private LabelAssignmentPolicy labelAssignmentPolicy = LabelAssignmentPolicy.SERVING;
        private Duration reloadTimeout = Duration.ofSeconds(60);
        private Duration overloadTarget = Duration.ofSeconds(1);
        private boolean splitUnconfigured;
        private @Nullable Devices devices;

        private Builder(List<Path> repositories) {
            this.repositories = repositories;
        }

        /** See {@link EngineOptions#repository}. */
        public Builder repository(RepositorySource.Options value) {
            this.repository = value;
            return this;
        }

        /** See {@link EngineOptions#deviceThreads}. */
        public Builder deviceThreads(int value) {
            this.deviceThreads = value;
            return this;
        }

        /** See {@link EngineOptions#loadThreads}. */
        public Builder loadThreads(int value) {
            this.loadThreads = value;
            return this;
        }

        /** See {@link EngineOptions#maxQueueSize}. */
        public Builder maxQueueSize(int value) {
            this.maxQueueSize = value;
            return this;
        }

        /** See {@link EngineOptions#memoryLimitBytes}. */
        public Builder memoryLimitBytes(long value) {
            this.memoryLimitBytes = value;
            return this;
        }

        /** See {@link EngineOptions#scratch}. */
        public Builder scratch(Path value) {
            this.scratch = value;
            return this;
        }

        /** See {@link EngineOptions#backendSettings}. */
        public Builder backendSettings(Map<String, Map<String, String>> value) {
            this.backendSettings = value;
            return this;
        }

        /** See {@link EngineOptions#autoComplete}. */
        public Builder autoComplete(boolean value) {
            this.autoComplete = value;
            return this;
        }

        /** See {@link EngineOptions#metrics}. */
        public Builder metrics(MetricsOptions value) {
            this.metrics = value;
            return this;
        }

        /** See {@link EngineOptions#rateLimits}. */
        public Builder rateLimits(@Nullable List<RateLimiter.Total> value) {
            this.rateLimits = value;
            return this;
        }

        /** See {@link EngineOptions#hostPolicies}. */
        public Builder hostPolicies(Map<String, Map<String, String>> value) {
            this.hostPolicies = value;
            return this;
        }

        /** See {@link EngineOptions#cache}. */
        public Builder cache(@Nullable CacheOptions value) {
            this.cache = value;
            return this;
        }

        /** See {@link EngineOptions#delays}. */
        public Builder delays(DelayOptions value) {
            this.delays = value;
            return this;
        }

        /** See {@link EngineOptions#loadRetries}. */
        public Builder loadRetries(int value) {
            this.loadRetries = value;
            return this;
        }

        /** See {@link EngineOptions#strictReadiness}. */
        public Builder strictReadiness(boolean value) {
            this.strictReadiness = value;
            return this;
        }

        /** See {@link EngineOptions#servedModels}. */
        public Builder servedModels(List<ModelListEntry> value) {
            this.servedModels = value;
            return this;
        }

        /** See {@link EngineOptions#modelListSource}. */
        public Builder modelListSource(FileSystemStoragePathSource.Options value) {
            this.modelListSource = value;
            return this;
        }

        /** See {@link EngineOptions#sources}. */
        public Builder sources(List<Source> value) {
            this.sources = value;
            return this;
        }

        /** See {@link EngineOptions#batching}. */
        public Builder batching(@Nullable BatchingParameters value) {
            this.batching = value;
            return this;
        }

        /** See {@link EngineOptions#perModelBatching}. */
        public Builder perModelBatching(boolean value) {
            this.perModelBatching = value;
            return this;
        }

        /** See {@link EngineOptions#warmup}. */
        public Builder warmup(WarmupOptions value) {
            this.warmup = value;
            return this;
        }

        /** See {@link EngineOptions#loadRetryInterval}. */
        public Builder loadRetryInterval(Duration value) {
            this.loadRetryInterval = value;
            return this;
        }

        /** See {@link EngineOptions#initialLoadThreads}. */
        public Builder initialLoadThreads(int value) {
            this.initialLoadThreads = value;
            return this;
        }

        /** See {@link EngineOptions#aspiredVersionPolicy}. */
        public Builder aspiredVersionPolicy(AspiredVersionPolicy value) {
            this.aspiredVersionPolicy = value;
            return this;
        }

        /** See {@link EngineOptions#labelAssignmentPolicy}. */
        public Builder labelAssignmentPolicy(LabelAssignmentPolicy value) {
            this.labelAssignmentPolicy = value;
            return this;
        }

        /** See {@link EngineOptions#reloadTimeout}. */
        public Builder reloadTimeout(Duration value) {
            this.reloadTimeout = value;
            return this;
        }

        /** See {@link EngineOptions#overloadTarget}. */
        public Builder overloadTarget(Duration value) {
            this.overloadTarget = value;
            return this;
        }

        /** See {@link EngineOptions#splitUnconfigured}. */
        public Builder splitUnconfigured(boolean value) {
            this.splitUnconfigured = value;
            return this;
        }

        /** See {@link EngineOptions#devices}. */
        public Builder devices(@Nullable Devices value) {
            this.devices = value;
            return this;
        }

        /** Creates the options. */
        public EngineOptions build() {
            return new EngineOptions(
                    repositories,
                    repository,
                    deviceThreads,
                    loadThreads,
                    maxQueueSize,
                    memoryLimitBytes,
                    scratch,
                    backendSettings,
                    autoComplete,
                    metrics,
                    rateLimits,
                    hostPolicies,
                    cache,
                    delays,
                    loadRetries,
                    strictReadiness,
                    servedModels,
                    modelListSource,
                    sources,
                    batching,
                    perModelBatching,
                    warmup,
                    loadRetryInterval,
                    initialLoadThreads,
                    aspiredVersionPolicy,
                    labelAssignmentPolicy,
                    reloadTimeout,
                    overloadTarget,
                    splitUnconfigured,
                    devices);
        }
    }
}
