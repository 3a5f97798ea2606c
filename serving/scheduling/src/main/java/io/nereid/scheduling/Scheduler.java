// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.spi.InferenceJob;
import java.util.concurrent.CompletionStage;

/**
 * The queue of one servable: takes jobs, refuses them when full or late, and hands them on in runs. Implementations are
 * thread-safe; no method blocks but for a run that {@link #submit} may do on the caller's thread (see
 * {@link SchedulerOptions.Inline}).
 */
public interface Scheduler extends AutoCloseable {
    /**
     * Takes a job and sees to it that it ends once, possibly before this returns and on this thread; or throws and leaves
     * the job with the caller, not ended and without an action on cancellation.
     *
     * @throws io.nereid.base.ServingException UNAVAILABLE when the queue is full or closed, DEADLINE_EXCEEDED when the
     *     job comes too late, CANCELLED when its client has gone away
     */
    void submit(InferenceJob job);

    /** Jobs waiting now. */
    int queued();

    /** Runs under way now, at most the number of instances. */
    int running();

    /** Runs begun since the start. */
    long batches();

    /**
     * Accepts no more jobs; those that wait are run without further delay. Returns at once. Idempotent.
     */
    @Override
    void close();

    /** Completes when, after {@link #close}, the last job has ended. */
    CompletionStage<Void> drained();
}
