// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.spi.InferenceJob;
import java.util.List;

/** Runs batches on a model's instances. Implementations are thread-safe across instances. */
public interface BatchRunner {
    /**
     * Runs one batch and ends every job before it returns, in the order of the list. Must not throw; if it does, every
     * job is failed with INTERNAL, ended or not.
     *
     * <p>The scheduler has marked the jobs as {@code queued} and {@code started}, has found them neither expired nor
     * cancelled, and has taken its own action on cancellation back.
     *
     * @param instance 0 … instances - 1 (the number may change, see {@link Scheduler#instances(int)}), used by no other run at the same time
     * @param jobs at least one, unmodifiable; with ordered answers they may be wrappers of the jobs that were submitted
     * @param cut why the batch ended where it did, for metrics and traces
     */
    void run(int instance, List<InferenceJob> jobs, BatchCut cut);

    /**
     * Whether two jobs fit into one batch: equal shapes beyond the first dimension and the same set of inputs. Pure and
     * quick: it is called while the queue is locked. An equivalence: a batch is compared with its first job only.
     */
    boolean joinable(InferenceJob a, InferenceJob b);

    /**
     * The instance gets no more runs and has none under way: its memory may go. Should the number of instances grow
     * again, runs follow after this returns. Not called at the end of the scheduler.
     */
    default void retired(int instance) {}
}
