// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.spi;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.core.Workload;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;

/**
 * Fetches the files, secrets and config maps that workloads need to this machine. Implementations are thread-safe and
 * do not block.
 */
@FunctionalInterface
public interface ArtifactFetcher {
    /**
     * Fetches an artifact, or returns it from the cache. Cancelling the stage's future cancels the download.
     *
     * @param namespace the namespace whose secrets may be used
     * @param log receives progress messages in plain text, at most a few a second
     * @return the files; fails with a {@link io.nereid.base.ServingException} that describes the cause. The caller
     *     retries UNAVAILABLE, RESOURCE_EXHAUSTED and DEADLINE_EXCEEDED
     */
    CompletionStage<Lease> fetch(Workload.Artifact artifact, String namespace, Consumer<String> log);

    /**
     * Reads environment variables from a secret or a config map. The map is empty when the object is missing and
     * optional.
     *
     * @param namespace the namespace of the object
     * @return the values by variable name
     * @throws io.nereid.base.ServingException FAILED_PRECONDITION when the object is missing and required
     */
    default Map<String, String> variables(Workload.EnvironmentSource source, String namespace) {
        throw ServingException.of(
                ErrorCode.UNIMPLEMENTED, source.kind() + "s cannot be read here, and '" + source.object() + "' is one");
    }

    /** A claim on fetched files: the cache keeps them until it is closed. Implementations are thread-safe. */
    interface Lease extends AutoCloseable {
        /** The directory or the single file. Read only. */
        Path path();

        @Override
        void close();
    }
}
