// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import io.nereid.backend.Backend;
import io.nereid.base.ServingException;
import io.nereid.repository.problem.Problem;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.VersionPolicy;
import io.nereid.spi.management.ModelListEntry;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * The state of a model's directory at one read. Immutable.
 *
 * @param entry the model
 * @param config its configuration with name, platform, backend and file filled in
 * @param backend its backend; null for an ensemble, and if the problems explain why there is none
 * @param versions all stored versions, ascending
 * @param problems problems of the model as a whole
 * @param readable whether the directory could be read
 * @param fingerprint of the configuration, all files and problems
 * @param newestMillis latest modification time of all files
 */
public record StoredModel(
        ModelEntry entry,
        ModelConfig config,
        @Nullable Backend backend,
        List<Version> versions,
        List<Problem> problems,
        boolean readable,
        String fingerprint,
        long newestMillis) {
    /**
     * The location of a model: found in a root, named by a model list, or managed by a control plane.
     *
     * @param name its name
     * @param root the root it was found in
     * @param directory its directory
     * @param file the model's file if the model is a single file, else null
     * @param named whether its configuration must have the name of the directory
     * @param served its entry in the model list; null for other models
     * @param placed whether it is a managed model: its configuration may have any name, and its versions start at 0
     */
    public record ModelEntry(
            String name,
            Path root,
            Path directory,
            @Nullable Path file,
            boolean named,
            @Nullable ModelListEntry served,
            boolean placed) {
        /** A model that a root contains. */
        ModelEntry(String name, Path root, Path directory, @Nullable Path file, boolean named) {
            this(name, root, directory, file, named, null, false);
        }

        /** A managed model. */
        public static ModelEntry placed(String name, Path directory, @Nullable Path file) {
            return new ModelEntry(name, directory, directory, file, true, null, true);
        }

        /** A model of the list. */
        public static ModelEntry of(ModelListEntry served) {
            Path directory = ModelServerConfigValidator.directory(served);
            return new ModelEntry(served.name(), directory, directory, null, true, served, false);
        }

        /** The path for messages. */
        public Path place() {
            return file == null ? directory : file;
        }
    }

    /**
     * A stored version.
     *
     * @param version its number
     * @param directory the directory of its files
     * @param fingerprint of its files and of the configuration
     * @param newestMillis latest modification time of its files
     * @param error why it cannot be served; null if it can
     */
    public record Version(
            long version,
            Path directory,
            String fingerprint,
            long newestMillis,
            @Nullable ServingException error) {}

    /** Whether it is an ensemble. */
    public boolean isEnsemble() {
        return config.ensemble() != null;
    }

    /** Whether loaders can be created for it. */
    public boolean loadable() {
        return !hasErrors() && (backend != null || isEnsemble());
    }

    /** This model with an additional error. */
    public StoredModel withError(String message, @Nullable String remedy) {
        List<Problem> more = new ArrayList<>(problems);
        more.add(new Problem(Problem.Severity.ERROR, entry.place(), 0, 0, message, remedy));
        return new StoredModel(
                entry,
                config,
                backend,
                versions,
                List.copyOf(more),
                readable,
                fingerprint + " " + message,
                newestMillis);
    }

    public boolean hasErrors() {
        return problems.stream().anyMatch(Problem::isError);
    }

    public ServableId id(long version) {
        return new ServableId(entry.name(), version);
    }

    /** The versions that the version policy selects, ascending. */
    public List<Version> aspired() {
        VersionPolicy policy = config.versionPolicy();
        return switch (policy.kind()) {
            case ALL -> versions;
            case LATEST -> versions.subList(Math.max(0, versions.size() - policy.count()), versions.size());
            case SPECIFIC ->
                versions.stream()
                        .filter(v -> policy.versions().contains(v.version()))
                        .toList();
        };
    }
}
