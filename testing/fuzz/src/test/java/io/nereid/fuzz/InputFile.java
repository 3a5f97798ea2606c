// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A file that contains the present input, for readers that take a path. Its folder is in the directory for temporary files, which the
 * script keeps in memory, and is deleted when the process ends. Confined to one thread.
 */
public final class InputFile {
    private final Path folder;
    private final Path file;

    /** A file of this name in a folder of its own. */
    public InputFile(String name) {
        try {
            folder = Files.createTempDirectory("fuzz");
        } catch (IOException e) {
            throw new java.io.UncheckedIOException(e);
        }
        file = folder.resolve(name);
        // In the order opposite to registration: the file first.
        folder.toFile().deleteOnExit();
        file.toFile().deleteOnExit();
    }

    /** Writes the input; returns the file. */
    public Path with(byte[] input) throws IOException {
        return Files.write(file, input);
    }

    /** The folder, which has no other file. */
    public Path folder() {
        return folder;
    }
}
