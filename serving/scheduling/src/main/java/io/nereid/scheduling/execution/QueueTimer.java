// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

import io.nereid.base.Clock;
import io.nereid.base.Timer;
import org.jspecify.annotations.Nullable;

/**
 * The timer task of one scheduler: at most one at a time, at the earliest requested time. The task evaluates the whole
 * state of its scheduler and requests the next time. Therefore a task that has become too early is not moved: that
 * costs more than one superfluous evaluation. Guarded by the lock of the scheduler that owns it.
 */
public final class QueueTimer {
    /** The time of an event that does not happen. */
    public static final long NEVER = Long.MAX_VALUE;

    private final Timer timer;
    private final Clock clock;
    private final Runnable task;
    private long at = NEVER;
    private Timer.@Nullable ScheduledTask pending;

    /** Creates a timer for {@code task}, which is called without the scheduler's lock. */
    public QueueTimer(Timer timer, Clock clock, Runnable task) {
        this.timer = timer;
        this.clock = clock;
        this.task = task;
    }

    /** Ensures that the task runs at {@code nanos} of the clock or earlier; {@link #NEVER} requests nothing. */
    public void schedule(long nanos) {
        if (nanos == NEVER || (at != NEVER && at - nanos <= 0)) {
            return;
        }
        cancel();
        at = nanos;
        pending = timer.after(nanos - clock.nanos(), task);
    }

    /** Records that the task has started, so that the next request schedules it again. */
    public void fired() {
        pending = null;
        at = NEVER;
    }

    /** Cancels the task, if it has not started. */
    public void cancel() {
        if (pending != null) {
            pending.cancel();
        }
        fired();
    }

    /** Returns the earlier of two times, each of which may be {@link #NEVER}. */
    public static long earlier(long a, long b) {
        if (a == NEVER || b == NEVER) {
            return a == NEVER ? b : a;
        }
        // A difference, since System.nanoTime() may overflow.
        return a - b <= 0 ? a : b;
    }
}
