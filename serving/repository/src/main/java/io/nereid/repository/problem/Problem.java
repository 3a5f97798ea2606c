// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.problem;

import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * One thing wrong in a repository. Immutable.
 *
 * @param severity whether the model can be served nevertheless
 * @param file the file or directory it is about
 * @param line line in that file, from 1; 0 when it is not about a line
 * @param column column in that line, from 1; 0 when it is not about a line
 * @param message what, the offending value, what was expected
 * @param remedy the next step, or null
 */
public record Problem(
        Severity severity,
        Path file,
        int line,
        int column,
        String message,
        @Nullable String remedy) {
    /** How bad a problem is. */
    public enum Severity {
        /** The model, or one version of it, cannot be served. */
        ERROR,
        /** Served, but perhaps not as its author thinks. */
        WARNING
    }

    /** Whether the model, or a version of it, cannot be served for this. */
    public boolean isError() {
        return severity == Severity.ERROR;
    }

    /** File, place, message and remedy on one line, as compilers write it. */
    @Override
    public String toString() {
        StringBuilder b = new StringBuilder().append(file);
        if (line > 0) {
            b.append(':').append(line).append(':').append(column);
        }
        b.append(": ").append(message);
        return remedy == null
                ? b.toString()
                : b.append(" (").append(remedy).append(')').toString();
    }
}
