// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.control.core.Workload;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;

/** Brings what workloads need to this machine. Implementations are thread-safe and return at once. */
@FunctionalInterface
public interface Artifacts {
    /**
     * Fetches files, or finds them where they were fetched before. Cancelling the stage's future gives up.
     *
     * @param namespace whose secrets may be used
     * @param log told of the progress in lines for people, at most a few a second
     * @return the files; fails with a {@link io.nereid.base.ServingException} that says what is wrong. UNAVAILABLE,
     *     RESOURCE_EXHAUSTED and DEADLINE_EXCEEDED are tried again
     */
    CompletionStage<Lease> fetch(Workload.Artifact artifact, String namespace, Consumer<String> log);

    /**
     * Variables whose values lie in a secret or a config map, by their names; none when it is missing and may be.
     *
     * @param namespace where it lies
     * @throws io.nereid.base.ServingException FAILED_PRECONDITION when it is missing
     */
    default Map<String, String> variables(Workload.EnvironmentSource source, String namespace) {
        throw ServingException.of(
                ErrorCode.UNIMPLEMENTED, source.kind() + "s cannot be read here, and '" + source.object() + "' is one");
    }

    /** Files that stay where they are until this is closed. Implementations are thread-safe. */
    interface Lease extends AutoCloseable {
        /** A directory, or a single file. Read only. */
        Path path();

        @Override
        void close();
    }
}
