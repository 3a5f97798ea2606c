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
 * The files of one version, without the configuration, by path: sizes and times. Equal when loading them again would read
 * the same. Immutable.
 */
final class FileFingerprint {
    private static final int MAX_DEPTH = 8;

    private record Stamp(long size, FileTime modified) {}

    private final @Nullable Map<String, Stamp> files;

    private FileFingerprint(@Nullable Map<String, Stamp> files) {
        this.files = files;
    }

    /** The version's directory, and whatever of the model's directory is not another version or a configuration. */
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

    /** Files that could not be read are equal to none. */
    boolean same(FileFingerprint other) {
        return files != null && files.equals(other.files);
    }
}
