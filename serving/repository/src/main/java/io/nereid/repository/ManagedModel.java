// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.spi.config.DynamicBatching;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * One managed model. Immutable.
 *
 * @param name its name in the engine; may contain slashes
 * @param directory the directory with its files, or a single file
 * @param repository whether the directory is a Triton repository of several models; each is served as
 *     {@code name/directory}
 * @param backend the backend or platform, unless a stored configuration names one; empty to determine it by the
 *     files
 * @param modelFile the name of the model's file; empty for the only one of its kind
 * @param parameters override the parameters of the stored configuration
 * @param instances number of instances; multiplies the counts of the stored configuration. A change does not reload
 * @param batching dynamic batching, unless the stored configuration has it; null for no batching
 * @param maxBatchSize maximum batch size with {@code batching}, unless the stored configuration has one; 0 for the
 *     backend's
 * @param config the whole configuration as JSON of Triton's ModelConfig, instead of a stored one; empty for the
 *     stored one
 * @param expectedFiles glob patterns of files that may be the model, such as {@code *.joblib}; empty for the
 *     backend's default files
 * @param gpus the ordinals of the GPUs that are the model's; empty for all. The numbers of the stored configuration count
 *     them from 0, and groups that may run on GPUs run on these
 */
public record ManagedModel(
        String name,
        Path directory,
        boolean repository,
        String backend,
        String modelFile,
        Map<String, String> parameters,
        int instances,
        @Nullable DynamicBatching batching,
        int maxBatchSize,
        String config,
        List<String> expectedFiles,
        List<Integer> gpus) {
    /** Copies the collections. */
    public ManagedModel {
        parameters = Map.copyOf(parameters);
        expectedFiles = List.copyOf(expectedFiles);
        gpus = List.copyOf(gpus);
    }

    /** A model that may use all GPUs. */
    public ManagedModel(
            String name,
            Path directory,
            boolean repository,
            String backend,
            String modelFile,
            Map<String, String> parameters,
            int instances,
            @Nullable DynamicBatching batching,
            int maxBatchSize,
            String config,
            List<String> expectedFiles) {
        this(
                name,
                directory,
                repository,
                backend,
                modelFile,
                parameters,
                instances,
                batching,
                maxBatchSize,
                config,
                expectedFiles,
                List.of());
    }

    /** A model with default settings. */
    public static ManagedModel of(String name, Path directory) {
        return new ManagedModel(name, directory, false, "", "", Map.of(), 1, null, 0, "", List.of());
    }

    /** This model with another number of instances. */
    public ManagedModel withInstances(int count) {
        return new ManagedModel(
                name,
                directory,
                repository,
                backend,
                modelFile,
                parameters,
                count,
                batching,
                maxBatchSize,
                config,
                expectedFiles,
                gpus);
    }

    /** This model with GPUs of its own. */
    public ManagedModel withGpus(List<Integer> ordinals) {
        return new ManagedModel(
                name,
                directory,
                repository,
                backend,
                modelFile,
                parameters,
                instances,
                batching,
                maxBatchSize,
                config,
                expectedFiles,
                ordinals);
    }
}
