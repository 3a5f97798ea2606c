// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.spi.InferenceJob;
import java.util.List;

/**
 * Runs batches on the instances of a model. Implementations are thread-safe across instances: a scheduler never uses
 * one instance for two runs at the same time.
 *
 * <pre>{@code
 * public void run(int instance, List<InferenceJob> jobs, BatchCloseReason reason) {
 *     for (InferenceJob job : jobs) {
 *         job.complete(compute(instance, job.request().inputs()), Map.of());
 *     }
 * }
 * }</pre>
 */
public interface BatchRunner {
    /**
     * Runs one batch and ends every job before it returns, in the order of the list. Must not throw; if it does, the
     * scheduler fails every job of the batch with INTERNAL, whether it has ended or not.
     *
     * <p>Before the call the scheduler has marked the jobs as {@code queued} and {@code started}, has checked that they
     * are neither expired nor cancelled, and has removed its own action on cancellation.
     *
     * @param instance 0 … instances - 1 (the number may change, see {@code Scheduler.instances}); no concurrent
     *     run uses the same instance
     * @param jobs at least one, unmodifiable; these may be wrappers of the submitted jobs, for instance with
     *     {@code preserve_ordering}
     * @param reason why the batch was closed, for metrics and traces
     */
    void run(int instance, List<InferenceJob> jobs, BatchCloseReason reason);

    /**
     * Returns whether two jobs may share a batch: the same inputs, of equal or padded shapes beyond the first dimension.
     * Pure and quick: it is called while the queue is locked. An equivalence: a batch is compared with its first job
     * only.
     */
    boolean joinable(InferenceJob a, InferenceJob b);

    /**
     * Returns the length of a job's rows in a run of its own: jobs of different lengths may share a batch, in which every
     * row is computed with the greatest length. 0 where {@link #joinable} jobs have the same shapes. Pure and quick, as
     * that method.
     */
    default int length(InferenceJob job) {
        return 0;
    }

    /**
     * Called when an instance was removed and its last run has ended, so that its memory can be freed. If the number of
     * instances grows again later, the instance gets runs only after this method has returned. Not called when the
     * scheduler is closed.
     */
    default void retired(int instance) {}
}
