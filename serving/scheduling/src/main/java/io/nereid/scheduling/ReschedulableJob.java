// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

/**
 * A job of a sequence batcher, as {@link BatchRunner#run} gets it: one that a model with iterative sequences may run
 * again. Thread-safe.
 */
public interface ReschedulableJob {
    /**
     * Ends the job for this run and queues it for another one. Called instead of {@code complete} or {@code fail}, on
     * any thread. When the client has cancelled the request or its deadline has passed, the job fails instead. When the
     * model's sequences are not iterative, the job fails with FAILED_PRECONDITION.
     */
    void reschedule();
}
