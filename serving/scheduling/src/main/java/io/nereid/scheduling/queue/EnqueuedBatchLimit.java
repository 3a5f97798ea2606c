// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.queue;

import io.nereid.scheduling.BatchRunner;
import io.nereid.spi.InferenceJob;
import org.jspecify.annotations.Nullable;

/**
 * The maximum number of enqueued batches (TensorFlow Serving: {@code max_enqueued_batches}). Batches are closed only
 * when they run, so this class computes how many batches the queued jobs would form if each were as full as possible.
 *
 * <p>The count is kept and extended by each job that is appended. It is computed again only after other changes, and
 * only when a cheap upper bound does not already show that the limit is not reached. Guarded by the queue's lock.
 */
final class EnqueuedBatchLimit {
    private final int most;
    private final int largest;
    private final @Nullable BatchRunner joins;
    /** Whether the following fields describe the queue. */
    private boolean known;

    private int count;
    private long lastRows;
    private @Nullable InferenceJob lastHead;

    /**
     * @param most the maximum number of batches
     * @param largest rows of a full batch
     * @param joins decides which jobs may share a batch; null if every job runs alone
     */
    EnqueuedBatchLimit(int most, int largest, @Nullable BatchRunner joins) {
        this.most = most;
        this.largest = largest;
        this.joins = joins;
    }

    int most() {
        return most;
    }

    /** Returns the number of batches; valid right after {@link #admits} has returned false. */
    int count() {
        return count;
    }

    /** Called after any change except an appended job. */
    void changed() {
        known = false;
    }

    /** Returns whether a job may be appended; if so, counts it. */
    boolean admits(PriorityLevelQueue levels, QueuedJob e) {
        // Upper bound: each batch ends either at a full batch of rows or at a job that does not join.
        if (levels.size() + 1 + (levels.rows() + e.rows) / largest <= most) {
            known = false;
            return true;
        }
        if (!known) {
            count(levels);
        }
        int batches = count;
        long rows = lastRows;
        InferenceJob head = lastHead;
        add(e);
        if (count <= most) {
            return true;
        }
        count = batches;
        lastRows = rows;
        lastHead = head;
        return false;
    }

    private void count(PriorityLevelQueue levels) {
        known = true;
        count = 0;
        lastRows = 0;
        lastHead = null;
        for (QueuedJob e = levels.head(); e != null; e = levels.next(e)) {
            add(e);
        }
    }

    private void add(QueuedJob e) {
        long free = lastHead != null && joins != null && lastRows < largest && joins.joinable(lastHead, e.job)
                ? largest - lastRows
                : 0;
        if (e.rows <= free) {
            lastRows += e.rows;
            return;
        }
        if (e.large == null) {
            count++;
            lastRows = e.rows;
        } else {
            // A split job fills the last batch, then as many further ones as it needs.
            long rest = e.rows - free;
            count += (int) ((rest + largest - 1) / largest);
            lastRows = (rest - 1) % largest + 1;
        }
        lastHead = e.job;
    }
}
