// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.layout;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileVisitOption;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HexFormat;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * A digest of files by name, size and modification time, without reading them; on local file systems also by inode, so
 * that a file that replaces another one of the same size and time is detected. Confined to one thread.
 */
public final class Fingerprint {
    private static final int MAX_DEPTH = 16;
    private static final int MAX_FILES = 100_000;

    private final MessageDigest digest;
    private long newestMillis;
    private @Nullable Path asked;
    private boolean local;

    public Fingerprint() {
        try {
            digest = MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every JDK has SHA-256", e);
        }
    }

    public Fingerprint text(String text) {
        digest.update(text.getBytes(StandardCharsets.UTF_8));
        digest.update((byte) 0);
        return this;
    }

    /** Adds all files below a directory that match {@code counts}; follows links. */
    Fingerprint files(Path directory, Predicate<Path> counts) throws IOException {
        List<Path> files;
        try (Stream<Path> walk = Files.walk(directory, MAX_DEPTH, FileVisitOption.FOLLOW_LINKS)) {
            files = walk.filter(counts).limit(MAX_FILES).sorted().toList();
        } catch (UncheckedIOException e) {
            throw e.getCause();
        }
        for (Path file : files) {
            file(directory, file);
        }
        return this;
    }

    /** Adds one file, by its name relative to a directory. */
    void file(Path directory, Path file) throws IOException {
        BasicFileAttributes attributes = Files.readAttributes(file, BasicFileAttributes.class);
        long modified = attributes.lastModifiedTime().toMillis();
        newestMillis = Math.max(newestMillis, modified);
        text(directory.relativize(file).toString());
        if (!attributes.isDirectory()) {
            text(attributes.size() + " " + attributes.lastModifiedTime());
            if (attributes.fileKey() != null && local(file.getParent())) {
                text(attributes.fileKey().toString());
            }
        }
    }

    private boolean local(@Nullable Path directory) {
        if (directory != null && !directory.equals(asked)) {
            asked = directory;
            local = LocalFileSystems.contains(directory);
        }
        return directory != null && local;
    }

    long newestMillis() {
        return newestMillis;
    }

    public String sum() {
        return HexFormat.of().formatHex(digest.digest(), 0, 16);
    }
}
