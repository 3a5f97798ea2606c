// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import io.nereid.base.ServingException;
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
record ConfigScope(Path file, Path directory, String model, boolean gpus, Problems problems) {
    private static final long MAX_MICROSECONDS = Long.MAX_VALUE / 1_000;

    void error(Position at, String message, @Nullable String remedy) {
        problems.error(file, at, message, remedy);
    }

    void warning(Position at, String message, @Nullable String remedy) {
        problems.warning(file, at, message, remedy);
    }

    /** The name as error texts end. */
    String forModel() {
        return " for " + model;
    }

    /** The file that a field names, which must lie inside a directory of the model; null after it was found wrong. */
    @Nullable Path inside(Path where, BoundMessage message, String field, String what) {
        try {
            return TextFiles.inside(where, message.text(field));
        } catch (ServingException e) {
            error(message.place(field), what + " " + e.getMessage(), e.remedy());
            return null;
        }
    }

    /** A time in microseconds; one beyond what a long of nanoseconds holds counts as the longest. */
    static Duration micros(long micros) {
        return Duration.ofNanos(Math.min(micros, MAX_MICROSECONDS) * 1_000);
    }
}
