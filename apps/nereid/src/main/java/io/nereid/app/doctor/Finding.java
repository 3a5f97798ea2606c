// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.doctor;

import org.jspecify.annotations.Nullable;

/**
 * The result of one check. Immutable.
 *
 * @param check what was checked, such as {@code ports}
 * @param text what was found
 * @param remedy what to do; null when there is nothing to do
 */
record Finding(
        Level level, String check, String text, @Nullable String remedy) {
    /** How bad a finding is. */
    enum Level {
        OK,
        /** The server runs, but not as well or as safely as it could. */
        WARN,
        /** The server does not start, or is open to everyone. */
        FAIL
    }

    static Finding ok(String check, String text) {
        return new Finding(Level.OK, check, text, null);
    }

    static Finding warn(String check, String text, String remedy) {
        return new Finding(Level.WARN, check, text, remedy);
    }

    static Finding fail(String check, String text, String remedy) {
        return new Finding(Level.FAIL, check, text, remedy);
    }
}
