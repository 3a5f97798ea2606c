// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.queue;

import io.nereid.scheduling.execution.Timer;
import org.jspecify.annotations.Nullable;

/**
 * The timer task of a queue: at most one at a time, at the earliest requested time. A task that turns out to be too
 * early is not cancelled, since that costs more than a superfluous evaluation. Guarded by the queue's lock.
 */
final class QueueTimer {
    private final Timer timer;
    private final Runnable task;
    private long at = QueuedJob.NEVER;
    private Timer.@Nullable Alarm pending;

    QueueTimer(Timer timer, Runnable task) {
        this.timer = timer;
        this.task = task;
    }

    /** Ensures that the task runs at {@code nanos} or earlier; {@link QueuedJob#NEVER} requests nothing. */
    void schedule(long nanos) {
        if (nanos == QueuedJob.NEVER || (at != QueuedJob.NEVER && at - nanos <= 0)) {
            return;
        }
        if (pending != null) {
            pending.cancel();
        }
        at = nanos;
        pending = timer.at(nanos, task);
    }

    /** Notes that the task has started. */
    void fired() {
        pending = null;
        at = QueuedJob.NEVER;
    }
}
