// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import org.jspecify.annotations.Nullable;

/** A job's place in a queue, and its action on cancellation. Guarded by the queue's lock. */
final class Entry implements Runnable {
    final InferenceJob job;
    final int rows;
    final long deadline;
    final long since;
    private final JobQueue queue;
    State state = State.NEW;

    @Nullable Entry previous;

    @Nullable Entry next;

    Entry(JobQueue queue, InferenceJob job, long since) {
        this.queue = queue;
        this.job = job;
        this.rows = Math.max(1, job.batchSize());
        this.deadline = job.deadlineNanos();
        this.since = since;
    }

    boolean expired(long now) {
        return deadline != Long.MAX_VALUE && deadline - now <= 0;
    }

    /** The client has gone away. */
    @Override
    public void run() {
        queue.cancelled(this);
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
        TAKEN,
        CANCELLED
    }
}
