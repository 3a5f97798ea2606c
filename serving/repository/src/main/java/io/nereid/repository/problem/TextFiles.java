// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.problem;

import io.nereid.base.ServingException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.util.List;

/** Reads small text files of a model's directory, with size limits. Immutable. */
public final class TextFiles {
    /** Maximum size of a configuration. */
    public static final int MAX_CONFIG = 1 << 20;

    /** Maximum size of a model list, which may have many models. */
    public static final int MAX_LIST = 64 << 20;

    private static final int MAX_LABELS = 64 << 20;

    private TextFiles() {}

    /**
     * Reads a whole file.
     *
     * @throws ServingException INVALID_ARGUMENT if it cannot be read, is larger than {@code limit}, or is not UTF-8
     */
    public static String read(Path file, int limit) {
        byte[] bytes;
        try (InputStream in = Files.newInputStream(file)) {
            bytes = in.readNBytes(limit + 1);
        } catch (IOException e) {
            throw ServingException.invalidArgument("cannot read file: " + reason(e), "make it readable for the server");
        }
        if (bytes.length > limit) {
            throw ServingException.invalidArgument(
                    "the file has more than " + limit + " bytes",
                    "make it smaller, or check that it is the right file");
        }
        try {
            return StandardCharsets.UTF_8
                    .newDecoder()
                    .decode(ByteBuffer.wrap(bytes))
                    .toString();
        } catch (CharacterCodingException e) {
            throw ServingException.invalidArgument("the file is not UTF-8 text", "save it as UTF-8");
        }
    }

    /** Reads one label per line; ignores blank lines at the end. */
    public static List<String> labels(Path file) {
        List<String> lines = read(file, MAX_LABELS).lines().map(String::strip).toList();
        int end = lines.size();
        while (end > 0 && lines.get(end - 1).isEmpty()) {
            end--;
        }
        return List.copyOf(lines.subList(0, end));
    }

    /**
     * Resolves a file name of a configuration, which must lie inside the directory, also after following symbolic
     * links.
     *
     * @throws ServingException INVALID_ARGUMENT for a path that leaves the directory or does not exist
     */
    public static Path inside(Path directory, String name) {
        Path file;
        try {
            file = directory.resolve(name);
            if (name.isEmpty() || !file.normalize().startsWith(directory.normalize())) {
                throw outside(name, directory);
            }
            if (!file.toRealPath().startsWith(directory.toRealPath())) {
                throw outside(name, directory);
            }
        } catch (java.nio.file.InvalidPathException e) {
            throw ServingException.invalidArgument(ProblemCollector.quote(name) + " is not the name of a file");
        } catch (IOException e) {
            throw ServingException.invalidArgument(
                    "cannot read file " + ProblemCollector.quote(name) + ": " + reason(e), "put it into " + directory);
        }
        if (!Files.isRegularFile(file)) {
            throw ServingException.invalidArgument(
                    ProblemCollector.quote(name) + " is not a file", "name a file in " + directory);
        }
        return file;
    }

    private static ServingException outside(String name, Path directory) {
        return ServingException.invalidArgument(
                "file " + ProblemCollector.quote(name) + " lies outside of " + directory, "put it into that directory");
    }

    /** Describes the cause of an I/O error. */
    public static String reason(IOException e) {
        if (e instanceof NoSuchFileException || e instanceof java.nio.file.NotLinkException) {
            return "no such file";
        }
        if (e instanceof AccessDeniedException) {
            return "permission denied";
        }
        if (e instanceof NotDirectoryException) {
            return "not a directory";
        }
        if (e instanceof java.nio.file.FileSystemLoopException) {
            return "a symbolic link that leads back to itself";
        }
        if (e instanceof java.nio.file.FileSystemException f && f.getReason() != null) {
            return f.getReason();
        }
        String message = e.getMessage();
        return message == null ? e.getClass().getSimpleName() : message;
    }
}
