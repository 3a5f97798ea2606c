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

/** Writes objects as files below a directory. Each file appears atomically when it is complete. Thread-safe. */
final class FileObjectStore implements ObjectStore {
    private final Path directory;

    FileObjectStore(Path directory) {
        this.directory = directory.toAbsolutePath().normalize();
    }

    /**
     * The store for a URL such as {@code file:///var/log/models}.
     *
     * @throws ServingException INVALID_ARGUMENT when the URL does not name a local directory
     */
    static FileObjectStore of(String url) {
        try {
            return new FileObjectStore(Path.of(URI.create(url)));
        } catch (IllegalArgumentException | FileSystemNotFoundException e) {
            throw ServingException.invalidArgument(
                    "the logger's url '" + url + "' does not name a directory of this machine",
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
