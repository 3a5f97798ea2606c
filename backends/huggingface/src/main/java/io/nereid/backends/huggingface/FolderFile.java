// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.JsonValues;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** Reads the JSON files of a folder. Stateless. */
final class FolderFile {
    private static final long MOST_BYTES = 16 << 20;
    private static final String COPY = "copy the whole folder that save_pretrained wrote";

    private FolderFile() {}

    /** The object in a file; null when the file does not exist. */
    static @Nullable Map<?, ?> object(Path file) {
        Object value = read(file);
        if (value != null && !(value instanceof Map)) {
            throw rejected(file, "it is not a JSON object");
        }
        return (Map<?, ?>) value;
    }

    /** The list in a file; null when the file does not exist. */
    static @Nullable List<?> list(Path file) {
        Object value = read(file);
        if (value != null && !(value instanceof List)) {
            throw rejected(file, "it is not a JSON list");
        }
        return (List<?>) value;
    }

    /** The text of a file that must exist. */
    static byte[] bytes(Path file, long most) {
        try {
            long size = Files.size(file);
            if (size > most) {
                throw rejected(file, "it has " + size + " bytes (expected: at most " + most + ")");
            }
            return Files.readAllBytes(file);
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "cannot read '" + file + "': " + e.getClass().getSimpleName(),
                    "check that the server may read it",
                    e);
        }
    }

    private static @Nullable Object read(Path file) {
        return Files.exists(file) ? read(file, MOST_BYTES) : null;
    }

    /** The JSON value in a file that must exist and has at most so many bytes. */
    static @Nullable Object read(Path file, long most) {
        byte[] text = bytes(file, most);
        try {
            return JsonValues.read(text);
        } catch (ServingException e) {
            throw rejected(file, "it is not JSON: " + e.getMessage());
        }
    }

    static ServingException rejected(Path file, String why) {
        return ServingException.invalidArgument("model file '" + file + "' cannot be loaded: " + why, COPY);
    }
}
