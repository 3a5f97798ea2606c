// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local;

import io.nereid.control.core.Workload;
import java.nio.file.Path;
import java.util.concurrent.CompletionStage;
import java.util.function.Consumer;

/** Brings the files of workloads to this machine. Implementations are thread-safe and return at once. */
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

    /** Files that stay where they are until this is closed. Implementations are thread-safe. */
    interface Lease extends AutoCloseable {
        /** A directory, or a single file. Read only. */
        Path path();

        @Override
        void close();
    }
}
