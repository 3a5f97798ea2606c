// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import io.nereid.backend.Backend;
import io.nereid.base.ServingException;
import io.nereid.repository.problem.Problem;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.VersionPolicy;
import io.nereid.spi.ModelControl.ServedModel;
import io.nereid.spi.ServableId;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * What one look at a model's directory found. Immutable.
 *
 * @param entry which model
 * @param config its configuration with name, platform, backend and file filled in
 * @param backend what runs it; null for an ensemble, and when the problems say why there is none
 * @param versions every stored version, ascending
 * @param problems what is wrong with the model as a whole
 * @param readable whether the directory could be read at all
 * @param fingerprint of everything that was seen
 * @param newestMillis when the youngest of all files was written
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
     * A model that a root contains, or a list names.
     *
     * @param name its name
     * @param root the root it was found in
     * @param directory its directory
     * @param file the model's file, when that is all there is of it; else null
     * @param named whether its configuration must bear the name of the directory
     * @param served what the list of models says of it; null for a model that a root contains
     * @param placed whether it was placed: its configuration may bear any name, and its versions any number from 0
     */
    public record ModelEntry(
            String name,
            Path root,
            Path directory,
            @Nullable Path file,
            boolean named,
            @Nullable ServedModel served,
            boolean placed) {
        /** A model that a root contains. */
        ModelEntry(String name, Path root, Path directory, @Nullable Path file, boolean named) {
            this(name, root, directory, file, named, null, false);
        }

        /** A model that was placed. */
        public static ModelEntry placed(String name, Path directory, @Nullable Path file) {
            return new ModelEntry(name, directory, directory, file, true, null, true);
        }

        /** A model of the list. */
        public static ModelEntry of(ServedModel served) {
            Path directory = ModelServerConfigValidator.directory(served);
            return new ModelEntry(served.name(), directory, directory, null, true, served, false);
        }

        /** Where to point a finger at. */
        public Path place() {
            return file == null ? directory : file;
        }
    }

    /**
     * A stored version.
     *
     * @param version its number
     * @param directory where its files lie
     * @param fingerprint of its files and of the configuration
     * @param newestMillis when the youngest of its files was written
     * @param error why it cannot be served; null when nothing speaks against it
     */
    public record Version(
            long version,
            Path directory,
            String fingerprint,
            long newestMillis,
            @Nullable ServingException error) {}

    /** Whether it is made of other models. */
    public boolean isEnsemble() {
        return config.ensemble() != null;
    }

    /** Whether loaders can be made of it. */
    public boolean loadable() {
        return !hasErrors() && (backend != null || isEnsemble());
    }

    /** This model with another thing wrong with it. */
    public StoredModel but(String message, @Nullable String remedy) {
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

    /** The versions that the policy wants, ascending. */
    public List<Version> wanted() {
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
