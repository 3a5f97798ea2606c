// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.queue;

import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.QueuePolicy;
import io.nereid.spi.config.QueuePolicy.TimeoutAction;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * The queued jobs of one priority level under its queue policy (Triton: {@code ModelQueuePolicy}): maximum size,
 * timeout and timeout action. Jobs that were delayed after a timeout follow the others. Guarded by the queue's lock.
 */
final class PolicyQueue {
    private static final Duration FOREVER = Duration.ofNanos(Long.MAX_VALUE / 2);

    final long priority;
    final QueuedJobList timely = new QueuedJobList();
    final QueuedJobList delayed = new QueuedJobList();
    private final int maxSize;
    private final long defaultTimeout;
    private final boolean override;
    private final boolean delays;

    /** Neighbours in the list of non-empty levels, higher priorities first. */
    @Nullable
    PolicyQueue previous;

    @Nullable
    PolicyQueue next;

    PolicyQueue(long priority, QueuePolicy policy) {
        this.priority = priority;
        this.maxSize = policy.maxSize();
        this.defaultTimeout = nanos(policy.defaultTimeout());
        this.override = policy.allowTimeoutOverride();
        this.delays = policy.onTimeout() == TimeoutAction.DELAY;
    }

    /** Converts to nanoseconds, limited to {@link #FOREVER} so that sums with the clock do not overflow. */
    static long nanos(Duration time) {
        return time.compareTo(FOREVER) < 0 ? Math.max(0, time.toNanos()) : FOREVER.toNanos();
    }

    int size() {
        return timely.size() + delayed.size();
    }

    /** Returns whether the policy has a maximum size. */
    boolean limited() {
        return maxSize > 0;
    }

    boolean full() {
        return maxSize > 0 && size() >= maxSize;
    }

    /** Returns whether a timeout delays a job instead of rejecting it. */
    boolean delays() {
        return delays;
    }

    @Nullable
    QueuedJob head() {
        return timely.head != null ? timely.head : delayed.head;
    }

    /**
     * Returns the time until which a job that arrives now may wait; {@link QueuedJob#NEVER} for no limit. The timeout
     * of the request overrides the default only if the policy allows that, and only to a shorter one.
     */
    long timeout(InferenceJob job, long now) {
        long timeout = defaultTimeout;
        if (override) {
            long requested = job.request().options().timeoutNanos();
            if (requested > 0 && (timeout == 0 || requested < timeout)) {
                timeout = requested;
            }
        }
        return timeout == 0 || timeout >= FOREVER.toNanos() ? QueuedJob.NEVER : now + timeout;
    }
}
