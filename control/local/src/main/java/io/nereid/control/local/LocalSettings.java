// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Map;

/**
 * Settings of the control plane on one machine. Immutable.
 *
 * @param directory where pid files, logs and working directories of child processes are kept
 * @param environment the server's own environment, of which child processes get the part that is no secret
 * @param firstPort from where on ports for child processes are looked for
 * @param lastPort up to where
 * @param logLines most lines kept in memory for each revision
 * @param logBytes most bytes of a log file before it is set aside; one older file is kept
 * @param tick time between two looks of the autoscaler at a revision that is busy
 * @param mostReplicas most replicas of a revision that sets no limit
 * @param retries settings of the queue: the shortest and the longest time after which what failed is tried again
 */
public record LocalSettings(
        Path directory,
        Map<String, String> environment,
        int firstPort,
        int lastPort,
        int logLines,
        long logBytes,
        Duration tick,
        int mostReplicas,
        Retries retries) {
    /** Times after which what failed is tried again: doubling from the shortest to the longest. */
    public record Retries(Duration shortest, Duration longest) {}

    /** The defaults. */
    public static LocalSettings of(Path directory, Map<String, String> environment) {
        return new LocalSettings(
                directory,
                environment,
                31_000,
                32_700,
                2_000,
                10L << 20,
                Duration.ofSeconds(2),
                4 * Runtime.getRuntime().availableProcessors(),
                new Retries(Duration.ofSeconds(1), Duration.ofMinutes(5)));
    }
}
