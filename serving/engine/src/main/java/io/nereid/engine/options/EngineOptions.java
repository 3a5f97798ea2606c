// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.options;

import io.nereid.lifecycle.LabelRule;
import io.nereid.lifecycle.TransitionPolicy;
import io.nereid.repository.FileSystemStoragePathSource;
import io.nereid.repository.RepositorySource;
import io.nereid.repository.tfserving.BatchingParameters;
import io.nereid.scheduling.RateLimiter;
import io.nereid.spi.ModelControl.ServedModel;
import io.nereid.spi.Source;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What an engine is built from. Immutable. Made by {@link #builder} or {@link #toBuilder}.
 *
 * @param repositories directories of models, or a single model's directory or file
 * @param repository when and how they are read
 * @param deviceThreads threads that run models
 * @param loadThreads models that may load at once
 * @param maxQueueSize most requests that may wait for a model whose configuration sets no limit
 * @param memoryLimitBytes most memory that models may take by their estimates; 0 for no limit
 * @param scratch where backends may extract natives
 * @param backendSettings server-wide settings by backend's name
 * @param autoComplete whether backends may fill in what a configuration leaves out
 * @param metrics what is measured and shown
 * @param rateLimits grants runs their resources when not null: totals named explicitly, perhaps none
 * @param hostPolicies rules about processors and memory nodes by policy's name
 * @param cache where answers are kept for equal requests; null for nowhere
 * @param delays for tests: when queues begin to run
 * @param loadRetries how often a failed load is tried again
 * @param strictReadiness whether the server counts as ready only when every wanted model answers
 * @param servedModels models configured by list, beside the repositories; a list given later replaces it
 * @param listing how the list's base paths are looked at
 * @param sources further sources of models, which the engine starts and closes. A model that several sources name is served from the first: the list, the repositories, then these
 * @param batching how requests are joined for every model whose configuration does not say it; null for the models' defaults
 * @param perModelBatching whether {@code batching_params.pbtxt} of a version's directory says it instead; a model without that file is not batched
 * @param warmup how recorded requests of a version warm it up
 * @param loadRetryInterval time between two tries to load
 * @param initialLoadThreads models that may load at once at the start, if that is more; 0 for as many as later
 * @param transition in which order versions come and go
 * @param labelRule when a list may give a label to a version that does not serve
 * @param reloadTimeout how long a new list waits for its models before it reports
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
        @Nullable Cache cache,
        Delays delays,
        int loadRetries,
        boolean strictReadiness,
        List<ServedModel> servedModels,
        FileSystemStoragePathSource.Options listing,
        List<Source> sources,
        @Nullable BatchingParameters batching,
        boolean perModelBatching,
        Warmup warmup,
        Duration loadRetryInterval,
        int initialLoadThreads,
        TransitionPolicy transition,
        LabelRule labelRule,
        Duration reloadTimeout) {
    /** One repository, read once, with a thread per processor. */
    public static EngineOptions of(Path repository) {
        return builder(List.of(repository)).build();
    }

    /** The defaults for these repositories. */
    public static Builder builder(List<Path> repositories) {
        return new Builder(repositories);
    }

    /** These options, to be changed. */
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
                .listing(listing)
                .sources(sources)
                .batching(batching)
                .perModelBatching(perModelBatching)
                .warmup(warmup)
                .loadRetryInterval(loadRetryInterval)
                .initialLoadThreads(initialLoadThreads)
                .transition(transition)
                .labelRule(labelRule)
                .reloadTimeout(reloadTimeout);
    }

    /**
     * Where answers are kept.
     *
     * @param name the store's name, such as {@code local}
     * @param settings as the store understands them
     */
    public record Cache(String name, Map<String, String> settings) {}

    /**
     * How requests that were recorded in {@code assets.extra/tf_serving_warmup_requests} of a version are run before it
     * serves.
     *
     * @param enabled whether they are
     * @param iterations how often each is run, at least 1
     * @param threads how many run at once, at least 1
     * @param allBatchSizes whether each is also run in batches of every allowed size
     */
    public record Warmup(boolean enabled, int iterations, int threads, boolean allBatchSizes) {
        /** Each once, one after the other. */
        public static final Warmup DEFAULT = new Warmup(true, 1, 1, false);
    }

    /**
     * For tests that need batches formed in a known way.
     *
     * @param scheduler nothing of a model runs before so many requests wait at once; 0 for off
     * @param backlog as {@code scheduler}, for the backlog of the sequence batcher
     */
    public record Delays(int scheduler, int backlog) {
        /** Everything runs as soon as it can. */
        public static final Delays NONE = new Delays(0, 0);
    }

    /** Collects options. Every method replaces what was there and returns this. Confined to one thread. */
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
        private @Nullable Cache cache;
        private Delays delays = Delays.NONE;
        private int loadRetries;
        private boolean strictReadiness = true;
        private List<ServedModel> servedModels = List.of();
        private FileSystemStoragePathSource.Options listing = FileSystemStoragePathSource.Options.DEFAULT;
        private List<Source> sources = List.of();
        private @Nullable BatchingParameters batching;
        private boolean perModelBatching;
        private Warmup warmup = Warmup.DEFAULT;
        private Duration loadRetryInterval = Duration.ofSeconds(1);
        private int initialLoadThreads;
        private TransitionPolicy transition = TransitionPolicy.ALL_OR_NOTHING;
        private LabelRule labelRule = LabelRule.SERVING;
        private Duration reloadTimeout = Duration.ofSeconds(60);

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
        public Builder cache(@Nullable Cache value) {
            this.cache = value;
            return this;
        }

        /** See {@link EngineOptions#delays}. */
        public Builder delays(Delays value) {
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
        public Builder servedModels(List<ServedModel> value) {
            this.servedModels = value;
            return this;
        }

        /** See {@link EngineOptions#listing}. */
        public Builder listing(FileSystemStoragePathSource.Options value) {
            this.listing = value;
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
        public Builder warmup(Warmup value) {
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

        /** See {@link EngineOptions#transition}. */
        public Builder transition(TransitionPolicy value) {
            this.transition = value;
            return this;
        }

        /** See {@link EngineOptions#labelRule}. */
        public Builder labelRule(LabelRule value) {
            this.labelRule = value;
            return this;
        }

        /** See {@link EngineOptions#reloadTimeout}. */
        public Builder reloadTimeout(Duration value) {
            this.reloadTimeout = value;
            return this;
        }

        /** The options. */
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
                    listing,
                    sources,
                    batching,
                    perModelBatching,
                    warmup,
                    loadRetryInterval,
                    initialLoadThreads,
                    transition,
                    labelRule,
                    reloadTimeout);
        }
    }
}
