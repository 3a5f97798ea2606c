// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Where this user's extracted natives and archives lie. */
final class Scratch {
    private Scratch() {}

    /** {@code $XDG_CACHE_HOME/nereid} or {@code ~/.cache/nereid}, or a private temporary directory if that cannot be written. */
    static Path directory() {
        String cache = System.getenv("XDG_CACHE_HOME");
        Path wanted = cache != null && !cache.isEmpty()
                ? Path.of(cache, "nereid")
                : Path.of(System.getProperty("user.home"), ".cache", "nereid");
        try {
            Files.createDirectories(wanted);
            if (Files.isWritable(wanted)) {
                return wanted;
            }
        } catch (IOException e) {
            // Read-only homes are common in containers.
        }
        try {
            return Files.createTempDirectory("nereid");
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.FAILED_PRECONDITION,
                    "neither " + wanted + " nor the temporary directory can be written",
                    "set XDG_CACHE_HOME to a directory that can",
                    e);
        }
    }
}
