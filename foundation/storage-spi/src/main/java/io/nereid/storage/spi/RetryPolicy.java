// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.storage.spi;

import java.time.Duration;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Timeouts and retries of the requests to a store. Immutable.
 *
 * @param connect timeout for establishing a connection
 * @param read timeout until a response begins, and between two arrivals of bytes
 * @param attempts how often a request is sent at most
 */
public record RetryPolicy(Duration connect, Duration read, int attempts) {
    /** The pause after a number of failed attempts: it doubles from 100 ms to 5 s, less up to half of it by chance. */
    public static long pauseMillis(int failures) {
        long most = Math.min(5_000, 100L << Math.min(failures - 1, 10));
        return most / 2 + ThreadLocalRandom.current().nextLong(most / 2 + 1);
    }
}
