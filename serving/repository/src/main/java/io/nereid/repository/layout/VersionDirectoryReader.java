// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.repository.config.ModelNames;
import io.nereid.repository.layout.StoredModel.ModelEntry;
import io.nereid.repository.layout.StoredModel.Version;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.SourcePosition;
import io.nereid.repository.problem.TextFiles;
import io.nereid.spi.config.ModelConfig;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.NavigableMap;
import java.util.Objects;
import java.util.Set;

/** Reads version directories. Immutable; reads the disk on every call. */
final class VersionDirectoryReader {
    private static final Set<String> RESERVED = Set.of("warmup", "initial_state", "configs");

    /** Files of models without version directories, beside which directories are parts of the model. */
    private static final Set<String> WITH_DIRECTORIES =
            Set.of("MLmodel", "saved_model.pb", "config.json", "modules.json");

    private VersionDirectoryReader() {}

    /** Finds the version directories among {@code children}; warns about other directories. */
    static void find(List<Path> children, NavigableMap<Long, Path> into, ProblemCollector problems) {
        boolean parts = children.stream().anyMatch(c -> WITH_DIRECTORIES.contains(RepositoryLayout.fileName(c)));
        for (Path child : children) {
            String name = RepositoryLayout.fileName(child);
            if (name.startsWith(".") || RESERVED.contains(name) || !Files.isDirectory(child)) {
                if (ModelNames.version(name) > 0) {
                    problems.warning(
                            child,
                            SourcePosition.NONE,
                            "passed over, a version must be a directory",
                            "put the files into a directory '" + name + "'");
                }
                continue;
            }
            long version = ModelNames.version(name);
            if (version > 0) {
                into.put(version, child);
            } else if (!parts) {
                problems.warning(
                        child,
                        SourcePosition.NONE,
                        "passed over, " + ProblemCollector.quote(name)
                                + " is not a version (expected: a whole number from 1 without leading zeros)",
                        "rename it if it is one");
            }
        }
    }

    /**
     * Finds the version directories of a model of the list, whose names are whole numbers from 0, with or without
     * leading zeros. Of two for one number the last by name wins.
     */
    static void findListed(List<Path> children, NavigableMap<Long, Path> into, ProblemCollector problems) {
        for (Path child : children) {
            long version = ModelNames.listedVersion(RepositoryLayout.fileName(child));
            if (version < 0) {
                continue;
            }
            if (!Files.isDirectory(child)) {
                problems.warning(
                        child,
                        SourcePosition.NONE,
                        "passed over, a version must be a directory",
                        "put the files into a directory '" + version + "'");
                continue;
            }
            Path other = into.put(version, child);
            if (other != null) {
                problems.warning(
                        other,
                        SourcePosition.NONE,
                        "passed over, " + RepositoryLayout.fileName(child) + " is version " + version + " too",
                        "remove one of them");
            }
        }
    }

    static Version read(ModelEntry entry, long number, Path directory, String commonSum) {
        Fingerprint sum = new Fingerprint().text(commonSum);
        try {
            Path file = entry.file();
            if (file == null) {
                sum.files(directory, p -> true);
            } else {
                String stem = RepositoryLayout.stem(RepositoryLayout.fileName(file));
                try (DirectoryStream<Path> own = Files.newDirectoryStream(
                        directory, p -> RepositoryLayout.fileName(p).startsWith(stem))) {
                    List<Path> paths = new ArrayList<>();
                    own.forEach(paths::add);
                    Collections.sort(paths);
                    for (Path p : paths) {
                        sum.text(RepositoryLayout.fileName(p)).files(p, Files::isRegularFile);
                    }
                }
            }
            return new Version(number, directory, sum.sum(), sum.newestMillis(), null);
        } catch (IOException | DirectoryIteratorException e) {
            IOException io =
                    e instanceof DirectoryIteratorException d ? Objects.requireNonNull(d.getCause()) : (IOException) e;
            ServingException error = ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    "cannot read version " + number + " of model '" + entry.name() + "' at " + directory + ": "
                            + TextFiles.reason(io),
                    "make its files readable for the server");
            return new Version(number, directory, "", sum.newestMillis(), error);
        }
    }

    /**
     * Adds an error to each version without the file that the configuration names; the other versions can be served.
     */
    static List<Version> checked(List<Version> versions, ModelConfig config) {
        if (config.modelFile().isEmpty()) {
            return List.copyOf(versions);
        }
        List<Version> result = new ArrayList<>();
        for (Version v : versions) {
            if (v.error() == null && !Files.exists(v.directory().resolve(config.modelFile()))) {
                ServingException error = ServingException.invalidArgument(
                        "version " + v.version() + " of model '" + config.name() + "' has no file '"
                                + config.modelFile() + "' in " + v.directory(),
                        "add it, or correct 'default_model_filename'");
                result.add(new Version(v.version(), v.directory(), v.fingerprint(), v.newestMillis(), error));
            } else {
                result.add(v);
            }
        }
        return List.copyOf(result);
    }
}
