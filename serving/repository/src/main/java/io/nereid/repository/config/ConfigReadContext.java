// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.config;

import io.nereid.base.ServingException;
import io.nereid.repository.problem.ProblemCollector;
import io.nereid.repository.problem.SourcePosition;
import io.nereid.repository.problem.TextFiles;
import io.nereid.repository.schema.TypedMessage;
import java.nio.file.Path;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The context that all readers of one configuration share. Confined to one thread.
 *
 * @param file the origin of the text, for messages
 * @param directory the model's directory, to which file names in the text are relative
 * @param model the model's name
 * @param gpus the GPUs that the configuration is checked against
 * @param problems collects errors and warnings
 */
public record ConfigReadContext(Path file, Path directory, String model, GpuInventory gpus, ProblemCollector problems) {
    private static final long MAX_MICROSECONDS = Long.MAX_VALUE / 1_000;

    void error(SourcePosition at, String message, @Nullable String remedy) {
        problems.error(file, at, message, remedy);
    }

    void warning(SourcePosition at, String message, @Nullable String remedy) {
        problems.warning(file, at, message, remedy);
    }

    /** The end of error messages, with the model's name. */
    String forModel() {
        return " for " + model;
    }

    /** Returns the file that a field names, which must lie inside the directory; null after an error was reported. */
    @Nullable Path inside(Path where, TypedMessage message, String field, String what) {
        try {
            return TextFiles.inside(where, message.text(field));
        } catch (ServingException e) {
            error(message.place(field), what + " " + e.getMessage(), e.remedy());
            return null;
        }
    }

    /** Converts microseconds to a duration, limited to what fits a long of nanoseconds. */
    public static Duration micros(long micros) {
        return Duration.ofNanos(Math.min(micros, MAX_MICROSECONDS) * 1_000);
    }
}
