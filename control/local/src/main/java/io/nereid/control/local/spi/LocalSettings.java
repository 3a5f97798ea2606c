// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.spi;

import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;

/**
 * Settings of the control plane on one machine. Immutable.
 *
 * @param directory where pid files, logs and working directories of child processes are kept
 * @param environment the server's environment; child processes inherit a fixed list of its variables, without secrets
 * @param firstPort first of the ports that are assigned to child processes
 * @param lastPort last of these ports
 * @param logLines most lines kept in memory for each revision
 * @param logBytes size at which a log file is rotated; one older file is kept
 * @param maxReplicas most replicas of a revision that sets no limit
 * @param gpus the GPUs that can be used now; does not block
 */
public record LocalSettings(
        Path directory,
        Map<String, String> environment,
        int firstPort,
        int lastPort,
        int logLines,
        long logBytes,
        int maxReplicas,
        Supplier<List<LocalGpu>> gpus) {
    /** Creates the default settings, for a machine without GPUs. */
    public static LocalSettings of(Path directory, Map<String, String> environment) {
        return new LocalSettings(
                directory,
                environment,
                31_000,
                32_700,
                2_000,
                10L << 20,
                4 * Runtime.getRuntime().availableProcessors(),
                List::of);
    }

    /** These settings with GPUs. */
    public LocalSettings withGpus(Supplier<List<LocalGpu>> usable) {
        return new LocalSettings(directory, environment, firstPort, lastPort, logLines, logBytes, maxReplicas, usable);
    }
}
