// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.repository.RepositorySource;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * What an engine is built from. Immutable.
 *
 * @param repositories directories of models, or a single model's directory or file
 * @param repository when and how they are read
 * @param deviceThreads threads that run models
 * @param loadThreads models that may load at once
 * @param maxQueueSize most requests that may wait for a model whose configuration sets no limit
 * @param memoryLimitBytes most memory that models may take by their estimates; 0 for no limit
 * @param scratch where backends may extract natives
 * @param backendSettings server-wide settings by backend's name
 */
public record EngineOptions(
        List<Path> repositories,
        RepositorySource.Options repository,
        int deviceThreads,
        int loadThreads,
        int maxQueueSize,
        long memoryLimitBytes,
        Path scratch,
        Map<String, Map<String, String>> backendSettings) {
    /** One repository, read once, with a thread per processor. */
    public static EngineOptions of(Path repository) {
        return new EngineOptions(
                List.of(repository),
                RepositorySource.Options.DEFAULT,
                Runtime.getRuntime().availableProcessors(),
                4,
                10_000,
                0,
                Path.of(System.getProperty("java.io.tmpdir")),
                Map.of());
    }
}
