// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.process;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The file in which Kubernetes looks for the reason why a container ended; the status of the pod shows it. Stateless.
 *
 * <p>Source of the path and the limit: "Determine the Reason for Pod Failure" of Kubernetes' documentation.
 */
public final class TerminationLog {
    private static final Logger LOG = LoggerFactory.getLogger(TerminationLog.class);
    private static final Path USUAL = Path.of("/dev/termination-log");
    /** The most bytes of which Kubernetes takes notice. */
    private static final int MOST = 4096;

    private TerminationLog() {}

    /**
     * Writes the reason of a failure. A failure to write is only logged: the reason is in the container's log too.
     *
     * @param named the file, or null for the usual one, if this container has it
     */
    public static void write(@Nullable Path named, String reason) {
        if (named == null && !Files.isRegularFile(USUAL)) {
            return;
        }
        Path file = named == null ? USUAL : named;
        byte[] bytes = reason.getBytes(StandardCharsets.UTF_8);
        try {
            Files.write(file, bytes.length > MOST ? Arrays.copyOf(bytes, MOST) : bytes);
        } catch (IOException e) {
            LOG.warn("the reason cannot be written to {}: {}", file, e.toString());
        }
    }
}
