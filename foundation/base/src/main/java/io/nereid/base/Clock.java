// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.base;

/** The only source of time in the server, so that tests can control it. Implementations are thread-safe. */
public interface Clock {
    /** Monotonic nanoseconds with an arbitrary origin; compare by subtraction. */
    long nanos();

    /** Wall-clock milliseconds since the epoch. */
    long millis();

    /** The system clock. */
    static Clock system() {
        return SystemClock.INSTANCE;
    }
}
