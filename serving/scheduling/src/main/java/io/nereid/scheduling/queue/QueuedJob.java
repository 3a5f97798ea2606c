// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.queue;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import org.jspecify.annotations.Nullable;

/**
 * A job in a {@link RequestQueue}: its state, its position in lists and timeout heap, and its action on cancellation.
 * Guarded by the queue's lock, except for the final fields.
 */
final class QueuedJob implements Runnable {
    static final long NEVER = Long.MAX_VALUE;

    final InferenceJob job;
    /** The job, if it has more rows than a batch and is split; else null. */
    final @Nullable SplitJob large;

    final long deadline;
    final long since;
    private final RequestQueue queue;
    State state = State.NEW;
    /** Rows that no batch has taken yet, at least 1. */
    int rows;

    /** The earlier of the job's deadline and the timeout of its level's policy; {@link #NEVER} for none. */
    long expiry;
    /** Index in {@link TimeoutHeap}, or -1. */
    int expiryIndex = -1;

    @Nullable
    PolicyQueue level;

    @Nullable
    QueuedJobList line;

    @Nullable
    QueuedJob previous;

    @Nullable
    QueuedJob next;

    QueuedJob(RequestQueue queue, InferenceJob job, long since) {
        this.queue = queue;
        this.job = job;
        this.large = job instanceof SplitJob l ? l : null;
        this.rows = Math.max(1, job.batchSize());
        this.deadline = job.deadlineNanos();
        this.expiry = deadline;
        this.since = since;
    }

    /** Returns whether the job's own deadline has passed. */
    boolean late(long now) {
        return deadline != NEVER && deadline - now <= 0;
    }

    /** Returns the earlier of two times, each of which may be {@link #NEVER}. */
    static long earlier(long a, long b) {
        if (a == NEVER || b == NEVER) {
            return a == NEVER ? b : a;
        }
        return a - b <= 0 ? a : b;
    }

    /** The action on cancellation. */
    @Override
    public void run() {
        queue.cancelled(this);
    }

    /** Removes the remaining rows of a split job that has ended. The caller must not hold the queue's lock. */
    void withdraw() {
        queue.withdrawn(this);
    }

    /** Fails a job that never ran. The caller must not hold the queue's lock. */
    void fail(ServingException e) {
        job.onCancel(null);
        OrderedJob.fail(job, e);
    }

    /** NEW → QUEUED → TAKEN, TIMED_OUT or CANCELLED. */
    enum State {
        NEW,
        QUEUED,
        /** Has waited longer than its level's policy allows, and will fail for that reason. */
        TIMED_OUT,
        TAKEN,
        CANCELLED
    }
}
