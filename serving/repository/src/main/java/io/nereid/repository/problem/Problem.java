// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.problem;

import java.nio.file.Path;
import org.jspecify.annotations.Nullable;

/**
 * A problem in a repository, with its position, like a compiler's diagnostic. Immutable.
 *
 * @param severity whether the model can be served nevertheless
 * @param file the file or directory
 * @param line line in that file, from 1; 0 if the problem does not refer to a line
 * @param column column in that line, from 1; 0 if the problem does not refer to a line
 * @param message the problem, the offending value and what was expected
 * @param remedy the next step, or null
 */
public record Problem(
        Severity severity,
        Path file,
        int line,
        int column,
        String message,
        @Nullable String remedy) {
    /** Whether a problem prevents serving. */
    public enum Severity {
        /** The model, or one version of it, cannot be served. */
        ERROR,
        /** The model is served, but perhaps not as intended. */
        WARNING
    }

    /** Whether the problem prevents serving of the model or of a version. */
    public boolean isError() {
        return severity == Severity.ERROR;
    }

    /** File, position, message and remedy on one line, in the format of compilers. */
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
