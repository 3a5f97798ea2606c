// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelConfig.Queue;
import io.nereid.spi.ModelConfig.Queue.TimeoutAction;
import java.time.Duration;
import org.jspecify.annotations.Nullable;

/**
 * One priority level: the jobs that wait in it under its policy, those that have waited too long behind the others.
 * Guarded by the queue's lock.
 */
final class PolicyQueue {
    private static final Duration FOREVER = Duration.ofNanos(Long.MAX_VALUE / 2);

    final long priority;
    final Line timely = new Line();
    final Line delayed = new Line();
    private final int maxSize;
    private final long defaultTimeout;
    private final boolean override;
    private final boolean delays;

    /** Neighbours among the levels in which jobs wait, the more urgent before. */
    @Nullable PolicyQueue previous;

    @Nullable PolicyQueue next;

    PolicyQueue(long priority, Queue policy) {
        this.priority = priority;
        this.maxSize = policy.maxSize();
        this.defaultTimeout = nanos(policy.defaultTimeout());
        this.override = policy.allowTimeoutOverride();
        this.delays = policy.onTimeout() == TimeoutAction.DELAY;
    }

    /** At most {@link #FOREVER}, so that moments can be reckoned with it. */
    static long nanos(Duration time) {
        return time.compareTo(FOREVER) < 0 ? Math.max(0, time.toNanos()) : FOREVER.toNanos();
    }

    int size() {
        return timely.size() + delayed.size();
    }

    /** Whether it has a limit of its own. */
    boolean limited() {
        return maxSize > 0;
    }

    boolean full() {
        return maxSize > 0 && size() >= maxSize;
    }

    /** Whether a job that has waited too long is kept for later. */
    boolean delays() {
        return delays;
    }

    @Nullable Entry head() {
        return timely.head != null ? timely.head : delayed.head;
    }

    /** The moment until which a job that comes now may wait; {@link Entry#NEVER} for as long as it takes. */
    long timeout(InferenceJob job, long now) {
        long timeout = defaultTimeout;
        if (override) {
            long wish = job.request().options().timeoutNanos();
            if (wish > 0 && (timeout == 0 || wish < timeout)) {
                timeout = wish;
            }
        }
        return timeout == 0 || timeout >= FOREVER.toNanos() ? Entry.NEVER : now + timeout;
    }
}
