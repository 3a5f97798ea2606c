// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.serve;

import io.nereid.backend.Backend;
import io.nereid.base.Threads;
import io.nereid.engine.options.EngineOptions;
import io.nereid.repository.RepositorySource;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Loads the native libraries of the backends whose models are in the repositories while the rest of the server starts; else the first load
 * would begin with it. A backend without such a file costs nothing. Whatever goes wrong here the load of a model reports. Stateless.
 */
final class BackendPreparation {
    private static final Logger LOG = LoggerFactory.getLogger(BackendPreparation.class);

    /** Directories that are looked at: the first models of a large repository have its backends, mostly. */
    private static final int MODELS = 32;

    private static final int VERSIONS = 2;

    private BackendPreparation() {}

    /** Begins it on a thread of its own, unless models are loaded on request only. */
    static void begin(EngineOptions options, List<Backend> backends) {
        RepositorySource.Options repository = options.repository();
        List<Path> roots = options.repositories();
        if (roots.isEmpty()
                || repository.mode() == RepositorySource.Mode.EXPLICIT
                        && repository.startModels().isEmpty()) {
            return;
        }
        Threads.named("prepare")
                .newThread(() -> {
                    for (Backend backend : needed(roots, backends)) {
                        try {
                            var unused = backend.unavailableReason();
                        } catch (RuntimeException | LinkageError e) {
                            LOG.debug("the backend {} is not prepared", backend.name(), e);
                        }
                    }
                })
                .start();
    }

    /** The backends one of whose default files lies in a root, in a model's directory or in a version's. */
    static List<Backend> needed(List<Path> roots, List<Backend> backends) {
        List<Path> directories = new ArrayList<>(roots);
        for (Path root : roots) {
            for (Path model : directoriesIn(root, MODELS)) {
                directories.add(model);
                directories.addAll(directoriesIn(model, VERSIONS));
            }
        }
        return backends.stream()
                .filter(backend -> backend.defaultFiles().stream()
                        .anyMatch(file -> directories.stream().anyMatch(d -> Files.exists(d.resolve(file)))))
                .toList();
    }

    private static List<Path> directoriesIn(Path directory, int most) {
        List<Path> directories = new ArrayList<>();
        if (!Files.isDirectory(directory)) {
            return directories; // a root may be a file
        }
        try (DirectoryStream<Path> entries = Files.newDirectoryStream(directory, Files::isDirectory)) {
            for (Path entry : entries) {
                directories.add(entry);
                if (directories.size() == most) {
                    break;
                }
            }
        } catch (IOException | DirectoryIteratorException e) {
            LOG.debug("{} is not read for the preparation of backends", directory, e);
        }
        return directories;
    }
}
