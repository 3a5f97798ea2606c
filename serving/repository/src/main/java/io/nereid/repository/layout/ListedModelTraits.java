// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import io.nereid.repository.layout.BackendSelector.Choice;
import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.layout.StoredModel.Version;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.TextFiles;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.VersionPolicy;
import io.nereid.spi.management.ModelListEntry;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.NavigableMap;

/**
 * Where a model of TensorFlow Serving's model list differs from one of a repository: version directories, requested
 * policy and platform, and TensorFlow Serving's error messages. Immutable.
 */
public final class ListedModelTraits {
    private ListedModelTraits() {}

    static void unreadable(ModelEntry entry, IOException e, ProblemCollector problems) {
        if (entry.served() == null) {
            problems.error(
                    entry.directory(),
                    "cannot read the model's directory: " + TextFiles.reason(e),
                    "make it readable for the server");
        } else {
            problems.error(
                    entry.directory(),
                    "Could not find base path " + entry.directory() + " for servable " + entry.name() + " with error "
                            + TextFiles.reason(e),
                    "create it, or correct base_path");
        }
    }

    /** Applies the list to the configuration: its policy wins; its platform applies if the configuration has none. */
    static ModelConfig withListSettings(ModelConfig config, ModelListEntry served) {
        ModelConfig.Builder asked = config.toBuilder();
        if (served.versionPolicy() != null) {
            asked.versionPolicy(served.versionPolicy());
        }
        boolean any = served.platform().equals(ModelServerConfig.ANY_PLATFORM);
        if (!any && config.backend().isEmpty() && config.platform().isEmpty() && config.ensemble() == null) {
            asked.platform(served.platform());
        }
        return asked.build();
    }

    /**
     * The files by which the backend is recognised: those of the highest aspired version that has files, so that a new
     * empty directory does not hide the other versions.
     */
    static List<Path> recognitionFiles(NavigableMap<Long, Path> directories, VersionPolicy policy) {
        int left = policy.kind() == VersionPolicy.Kind.LATEST ? policy.count() : Integer.MAX_VALUE;
        for (var e : directories.descendingMap().entrySet()) {
            if (policy.kind() == VersionPolicy.Kind.SPECIFIC
                    && !policy.versions().contains(e.getKey())) {
                continue;
            }
            List<Path> files = RepositoryLayout.childrenOrNone(e.getValue());
            if (!files.isEmpty() || --left <= 0) {
                return files;
            }
        }
        return directories.isEmpty()
                ? List.of()
                : RepositoryLayout.childrenOrNone(directories.lastEntry().getValue());
    }

    /** Checks that the backend is the one that the list requests. */
    static void checkPlatform(
            ModelListEntry served, Choice choice, BackendSelector chooser, Path file, ProblemCollector problems) {
        if (!served.platform().equals(ModelServerConfig.ANY_PLATFORM)
                && choice.backend() != chooser.named(served.platform())) {
            problems.error(
                    file,
                    "Model " + served.name() + " requests platform " + served.platform()
                            + ", but its configuration asks for "
                            + (choice.backend() == null
                                    ? "an ensemble"
                                    : "the backend " + choice.backend().name()),
                    "write model_platform: \"" + ModelServerConfig.ANY_PLATFORM
                            + "\" to use the platform of the configuration");
        }
    }

    static void policy(StoredModel model, Path file, ProblemCollector problems) {
        if (problems.hasErrors()) {
            return;
        }
        String name = model.entry().name();
        if (model.versions().isEmpty()) {
            problems.error(
                    model.entry().directory(),
                    "No versions of servable " + name + " found under base path "
                            + model.entry().directory()
                            + ". Did you forget to name your leaf directory as a number (eg. '/1/')?",
                    null);
        } else if (model.aspired().isEmpty()) {
            problems.error(
                    model.entry().directory(),
                    "none of the versions " + model.config().versionPolicy().versions() + " of servable " + name
                            + " is found under base path " + model.entry().directory(),
                    "there is "
                            + model.versions().stream().map(Version::version).toList());
        } else {
            RepositoryLayout.missing(model, file, problems);
        }
    }

    /** Whether all accepted versions of a served model vanished from the same directory. */
    public static boolean vanished(StoredModel model, TrackedModel t) {
        return t.serving
                && model.readable()
                && model.aspired().isEmpty()
                && model.entry().directory().equals(t.directory)
                && t.emitted.stream()
                        .map(AspiredVersion::id)
                        .noneMatch(id -> model.versions().stream().anyMatch(v -> v.version() == id.version()));
    }
}
