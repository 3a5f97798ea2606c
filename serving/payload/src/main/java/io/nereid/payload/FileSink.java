// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.payload;

import io.nereid.base.ServingException;
import java.io.IOException;
import java.net.URI;
import java.nio.file.FileSystemNotFoundException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;

/** Objects as files below a directory. A file appears when it is complete. Thread-safe. */
final class FileSink implements BlobSink {
    private final Path directory;

    FileSink(Path directory) {
        this.directory = directory.toAbsolutePath().normalize();
    }

    /** The directory that a URL such as {@code file:///var/log/models} names. */
    static FileSink of(String url) {
        try {
            return new FileSink(Path.of(URI.create(url)));
        } catch (IllegalArgumentException | FileSystemNotFoundException e) {
            throw ServingException.invalidArgument(
                    "the logger's url '" + url + "' names no directory of this machine",
                    "write it as file:///absolute/path");
        }
    }

    @Override
    public void put(String key, byte[] bytes) throws IOException {
        Path file = directory.resolve(key).normalize();
        if (!file.startsWith(directory) || file.equals(directory)) {
            throw new IOException("the key '" + key + "' is outside of the directory");
        }
        Path parent = file.getParent();
        Files.createDirectories(parent);
        Path part = Files.createTempFile(parent, ".", ".part");
        try {
            Files.write(part, bytes);
            Files.move(part, file, StandardCopyOption.REPLACE_EXISTING, StandardCopyOption.ATOMIC_MOVE);
        } finally {
            Files.deleteIfExists(part);
        }
    }
}
