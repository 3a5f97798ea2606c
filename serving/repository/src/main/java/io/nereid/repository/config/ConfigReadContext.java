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
 * What the readers of the parts of one configuration share. Confined to one thread.
 *
 * @param file where the text comes from, for messages
 * @param directory the model's directory, in which the files that the text names lie
 * @param model the model's name
 * @param gpus whether this server can use GPUs
 * @param problems receives what is wrong
 */
public record ConfigReadContext(Path file, Path directory, String model, boolean gpus, ProblemCollector problems) {
    private static final long MAX_MICROSECONDS = Long.MAX_VALUE / 1_000;

    void error(SourcePosition at, String message, @Nullable String remedy) {
        problems.error(file, at, message, remedy);
    }

    void warning(SourcePosition at, String message, @Nullable String remedy) {
        problems.warning(file, at, message, remedy);
    }

    /** The name as error texts end. */
    String forModel() {
        return " for " + model;
    }

    /** The file that a field names, which must lie inside a directory of the model; null after it was found wrong. */
    @Nullable
    Path inside(Path where, TypedMessage message, String field, String what) {
        try {
            return TextFiles.inside(where, message.text(field));
        } catch (ServingException e) {
            error(message.place(field), what + " " + e.getMessage(), e.remedy());
            return null;
        }
    }

    /** A time in microseconds; one beyond what a long of nanoseconds holds counts as the longest. */
    public static Duration micros(long micros) {
        return Duration.ofNanos(Math.min(micros, MAX_MICROSECONDS) * 1_000);
    }
}
