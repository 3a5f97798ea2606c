// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.problem;

/**
 * A position in a text. Immutable.
 *
 * @param line from 1
 * @param column from 1
 */
public record SourcePosition(int line, int column) {
    /** No position. */
    public static final SourcePosition NONE = new SourcePosition(0, 0);
}
