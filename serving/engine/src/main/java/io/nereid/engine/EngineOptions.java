// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.repository.RepositorySource;
import io.nereid.scheduling.RateLimiter;
import java.nio.file.Path;
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
        boolean strictReadiness) {
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
                .strictReadiness(strictReadiness);
    }

    /**
     * Where answers are kept.
     *
     * @param name the store's name, such as {@code local}
     * @param settings as the store understands them
     */
    public record Cache(String name, Map<String, String> settings) {}

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
                    strictReadiness);
        }
    }
}
