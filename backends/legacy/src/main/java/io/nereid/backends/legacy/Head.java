// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.legacy;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * The beginning of a file, as text of one character a byte. Immutable.
 *
 * @param text up to 4096 bytes; empty for an empty file, for a directory and for one that cannot be read
 * @param readable whether there is a file that could be read
 */
record Head(String text, boolean readable) {
    private static final int BYTES = 4096;

    static Head of(Path file) {
        try (InputStream in = Files.newInputStream(file)) {
            return new Head(new String(in.readNBytes(BYTES), StandardCharsets.ISO_8859_1), true);
        } catch (IOException e) {
            return new Head("", false);
        }
    }

    /** What is wrong with the file whatever it should have been, or null. */
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
