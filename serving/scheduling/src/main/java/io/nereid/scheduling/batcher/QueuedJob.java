// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import io.nereid.base.ServingException;
import io.nereid.scheduling.execution.QueueTimer;
import io.nereid.spi.InferenceJob;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * A job in a {@link RequestQueue}: its state, its links in the queue, its index in the {@link TimeoutHeap}, and its
 * action on cancellation. The links are fields of the job, so that any job can leave the queue in constant time.
 * Guarded by the batcher's lock, except for the final fields.
 */
final class QueuedJob implements Runnable {
    static final long NEVER = QueueTimer.NEVER;

    final InferenceJob job;
    /** The job, if it has more rows than a batch and is split; else null. */
    final @Nullable SplitJob split;

    final long deadline;
    final long since;
    private final DynamicBatcher batcher;
    State state = State.NEW;
    /** Rows that no batch has taken yet, at least 1. */
    int rows;

    /** The length of its rows, -1 before it is computed; and its place among the jobs considered. Of {@link LengthBatching}. */
    int length = -1;

    int place;

    /** When its admission ends; {@link #NEVER} for not at all. */
    long limit = NEVER;

    /** The earliest of the job's deadline, the timeout of its level's policy and the limit; {@link #NEVER} for none. */
    long expiry;
    /** Index in {@link TimeoutHeap}, or -1. */
    int expiryIndex = -1;

    /** Its priority level while it is queued; else null. */
    RequestQueue.@Nullable Level level;
    /** Whether it has timed out under the policy DELAY, and is behind the other jobs of its level. */
    boolean delayed;

    @Nullable QueuedJob previous;

    @Nullable QueuedJob next;

    QueuedJob(DynamicBatcher batcher, InferenceJob job, long since) {
        this.batcher = batcher;
        this.job = job;
        this.split = job instanceof SplitJob s ? s : null;
        this.rows = Math.max(1, job.batchSize());
        this.deadline = job.deadlineNanos();
        this.expiry = deadline;
        this.since = since;
    }

    /** Returns whether the job's own deadline has passed. */
    boolean late(long now) {
        return deadline != NEVER && deadline - now <= 0;
    }

    /** The action on cancellation. */
    @Override
    public void run() {
        batcher.cancelled(this);
    }

    /** Removes the remaining rows of a split job that has ended. The caller must not hold the batcher's lock. */
    void withdraw() {
        batcher.withdrawn(this);
    }

    /** Fails a job that never ran. The caller must not hold the batcher's lock. */
    void fail(ServingException e) {
        job.onCancel(null);
        OrderedJob.fail(job, e);
    }

    /** NEW → QUEUED → TAKEN, TIMED_OUT, REFUSED or CANCELLED. */
    enum State {
        NEW,
        QUEUED,
        /** Has waited longer than its level's policy allows, and will fail for that reason. */
        TIMED_OUT,
        /** Would take too long, because the queue is overloaded. */
        REFUSED,
        TAKEN,
        CANCELLED
    }

    /** Marks the jobs of a batch as started, and removes those that were cancelled in the meantime, possibly all. */
    static List<InferenceJob> start(List<InferenceJob> jobs, long now) {
        boolean gone = false;
        for (InferenceJob job : jobs) {
            job.onCancel(null);
            job.started(now);
            gone |= job.cancelled();
        }
        if (!gone) {
            return jobs.size() == 1 ? jobs : Collections.unmodifiableList(jobs);
        }
        List<InferenceJob> rest = new ArrayList<>(jobs.size());
        for (InferenceJob job : jobs) {
            if (job.cancelled()) {
                OrderedJob.fail(job, QueueErrors.cancelled(job));
            } else {
                rest.add(job);
            }
        }
        return Collections.unmodifiableList(rest);
    }
}
