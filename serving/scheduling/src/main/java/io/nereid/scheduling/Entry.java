// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import org.jspecify.annotations.Nullable;

/** A job's place in a queue, and its action on cancellation. Guarded by the queue's lock. */
final class Entry implements Runnable {
    static final long NEVER = Long.MAX_VALUE;

    final InferenceJob job;
    /** Set when the job has more rows than a run takes, and is cut. */
    final @Nullable LargeJob large;

    final long deadline;
    final long since;
    private final JobQueue queue;
    State state = State.NEW;
    /** What is left of it, at least 1. */
    int rows;

    /** When it next has waited too long, for its own deadline or its level's policy; {@link #NEVER} for never. */
    long expiry;
    /** Its place in {@link Expiries}, or -1. */
    int expiryIndex = -1;

    @Nullable PolicyQueue level;

    @Nullable Line line;

    @Nullable Entry previous;

    @Nullable Entry next;

    Entry(JobQueue queue, InferenceJob job, long since) {
        this.queue = queue;
        this.job = job;
        this.large = job instanceof LargeJob l ? l : null;
        this.rows = Math.max(1, job.batchSize());
        this.deadline = job.deadlineNanos();
        this.expiry = deadline;
        this.since = since;
    }

    /** Whether the job's own deadline has passed. */
    boolean late(long now) {
        return deadline != NEVER && deadline - now <= 0;
    }

    /** The earlier of two moments, either of which may be {@link #NEVER}. */
    static long earlier(long a, long b) {
        if (a == NEVER || b == NEVER) {
            return a == NEVER ? b : a;
        }
        return a - b <= 0 ? a : b;
    }

    /** The client has gone away. */
    @Override
    public void run() {
        queue.cancelled(this);
    }

    /** The job has ended, and what is left of it need not run; outside the lock. */
    void withdraw() {
        queue.withdrawn(this);
    }

    /** Ends a job that never ran; outside the lock. */
    void refuse(ServingException e) {
        job.onCancel(null);
        Ordered.fail(job, e);
    }

    /** Where the job is. */
    enum State {
        NEW,
        QUEUED,
        /** Waited longer than its level's policy allows, and is to be refused for it. */
        TIMED_OUT,
        TAKEN,
        CANCELLED
    }
}
