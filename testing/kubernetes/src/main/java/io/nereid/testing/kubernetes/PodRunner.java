// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.kubernetes;

import io.fabric8.kubernetes.api.model.Pod;
import io.fabric8.kubernetes.api.model.PodStatus;
import io.fabric8.kubernetes.api.model.PodStatusBuilder;
import java.util.function.Consumer;

/**
 * What a node does with the pods that are scheduled to it. Implementations are thread-safe; the node calls them on one
 * thread for all its pods, and they do not block it.
 */
public interface PodRunner {
    /** A pod counts as ready at once, and nothing runs. */
    PodRunner READY = new PodRunner() {
        @Override
        public void start(Pod pod, String address, Consumer<PodStatus> status) {
            status.accept(PodStatuses.ready(pod, address));
        }

        @Override
        public void stop(Pod pod, Runnable stopped) {
            stopped.run();
        }
    };

    /** A pod stays as it is: not started. */
    PodRunner PENDING = new PodRunner() {
        @Override
        public void start(Pod pod, String address, Consumer<PodStatus> status) {
            status.accept(new PodStatusBuilder().withPhase("Pending").build());
        }

        @Override
        public void stop(Pod pod, Runnable stopped) {
            stopped.run();
        }
    };

    /**
     * Starts a pod.
     *
     * @param address the pod's address, its own as long as it exists
     * @param status called with the pod's status whenever it has changed, on any thread
     */
    void start(Pod pod, String address, Consumer<PodStatus> status);

    /**
     * Stops a pod that is being deleted, within its grace period.
     *
     * @param stopped called, on any thread, when nothing of it runs any more
     */
    void stop(Pod pod, Runnable stopped);
}
