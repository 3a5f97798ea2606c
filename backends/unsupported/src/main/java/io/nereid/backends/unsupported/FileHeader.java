// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.unsupported;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * The first bytes of a file, decoded as ISO 8859-1: one character per byte. Immutable.
 *
 * @param text up to 4096 bytes; empty for an empty file, a directory, or a file that cannot be read
 * @param readable whether the file exists and can be read
 */
record FileHeader(String text, boolean readable) {
    private static final int BYTES = 4096;

    static FileHeader of(Path file) {
        try (InputStream in = Files.newInputStream(file)) {
            return new FileHeader(new String(in.readNBytes(BYTES), StandardCharsets.ISO_8859_1), true);
        } catch (IOException e) {
            return new FileHeader("", false);
        }
    }

    /** A problem that no model file of any format may have (unreadable, empty, a Git LFS pointer), or null. */
    @Nullable String strange() {
        if (!readable) {
            return "it cannot be read";
        }
        if (text.isEmpty()) {
            return "the file is empty (0 bytes)";
        }
        if (text.startsWith("version https://git-lfs")) {
            return "the file is a Git LFS pointer, not the model itself (run 'git lfs pull')";
        }
        return null;
    }
}
