// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.process;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The user's cache directory for unpacked native libraries and archives. Stateless. */
public final class CacheDirectory {
    private CacheDirectory() {}

    /** {@code $XDG_CACHE_HOME/nereid} or {@code ~/.cache/nereid}, which need not exist. */
    public static Path configured() {
        String cache = System.getenv("XDG_CACHE_HOME");
        return cache != null && !cache.isEmpty()
                ? Path.of(cache, "nereid")
                : Path.of(System.getProperty("user.home"), ".cache", "nereid");
    }

    /**
     * Returns {@code $XDG_CACHE_HOME/nereid} or {@code ~/.cache/nereid}; a private temporary directory if it is not
     * writable.
     */
    public static Path directory() {
        Path cacheDirectory = configured();
        try {
            Files.createDirectories(cacheDirectory);
            if (Files.isWritable(cacheDirectory)) {
                return cacheDirectory;
            }
        } catch (IOException e) {
            // Read-only homes are common in containers.
        }
        try {
            return Files.createTempDirectory("nereid");
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "neither " + cacheDirectory + " nor the temporary directory can be written",
                    "set XDG_CACHE_HOME to a writable directory",
                    e);
        }
    }
}
