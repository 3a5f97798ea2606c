// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

/**
 * A place in a text. Immutable.
 *
 * @param line from 1
 * @param column from 1
 */
record Position(int line, int column) {
    /** No place in particular. */
    static final Position NONE = new Position(0, 0);
}
