// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.loading;

import io.nereid.backend.ModelLocation;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.FileVisitOption;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.Map;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * The sizes and modification times of a version's files, by path, without the configuration. Two equal fingerprints
 * mean that loading again would read the same files. Immutable.
 */
final class FileFingerprint {
    private static final int MAX_DEPTH = 8;

    private record Stamp(long size, FileTime modified) {}

    private final @Nullable Map<String, Stamp> files;

    private FileFingerprint(@Nullable Map<String, Stamp> files) {
        this.files = files;
    }

    /**
     * Reads the version's directory, and everything in the model's directory except other versions and configurations.
     */
    static FileFingerprint of(ModelLocation source) {
        Map<String, Stamp> files = new TreeMap<>();
        try {
            add(files, source.versionDirectory(), MAX_DEPTH, "version/");
            try (Stream<Path> list = Files.list(source.modelDirectory())) {
                for (Path path : (Iterable<Path>) list::iterator) {
                    String name = path.getFileName().toString();
                    boolean version = name.chars().allMatch(Character::isDigit);
                    boolean configuration = name.endsWith(".pbtxt") || name.equals("configs");
                    if (!version && !configuration && !path.equals(source.versionDirectory())) {
                        add(files, path, MAX_DEPTH, name + "/");
                    }
                }
            }
        } catch (IOException | UncheckedIOException e) {
            return new FileFingerprint(null);
        }
        return new FileFingerprint(files);
    }

    private static void add(Map<String, Stamp> files, Path root, int depth, String prefix) throws IOException {
        try (Stream<Path> walk = Files.walk(root, depth, FileVisitOption.FOLLOW_LINKS)) {
            for (Path path : (Iterable<Path>) walk::iterator) {
                if (Files.isRegularFile(path)) {
                    files.put(
                            prefix + root.relativize(path),
                            new Stamp(Files.size(path), Files.getLastModifiedTime(path)));
                }
            }
        }
    }

    /** Whether the files are unchanged. A directory that could not be read is never equal. */
    boolean same(FileFingerprint other) {
        return files != null && files.equals(other.files);
    }
}
