// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.workload;

import io.nereid.control.core.ObservedState.Failure;
import io.nereid.control.core.Workload;
import java.nio.file.Path;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Runs the workload of one revision: as a model in the engine, as a component in this process, or as child processes.
 * Confined to the event loop thread.
 */
public interface WorkloadRunner {
    /** Sets the number of replicas; 0 releases all resources. */
    void scale(int replicas);

    /** The number of ready replicas. */
    int ready();

    /** The last failure since the workload was last ready; null without one. */
    @Nullable Failure failure();

    /** Whether the workload is failing now, rather than starting. */
    boolean failing();

    /** The largest number of replicas that this workload can have. */
    int maxReplicas();

    /** Prevents restarts of failed processes from now on. Called at server shutdown. */
    default void abandon() {}

    /** Ends the workload, and runs the callback when everything is released. */
    void end(Runnable ended);

    /** Creates runners. */
    @FunctionalInterface
    interface Factory {
        /**
         * Creates a runner, which starts nothing until it is scaled.
         *
         * @param files the fetched artifacts, in their order
         * @param activator receives the destination of requests
         * @param log the log of the revision
         * @param changed called when the reported state has changed
         */
        WorkloadRunner runner(
                Workload workload,
                List<Path> files,
                ServiceRouting.Activator activator,
                RevisionLog log,
                Runnable changed);
    }
}
