// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import org.jspecify.annotations.Nullable;

/** The one call of the timer that a queue waits for: the earliest it was asked for. Guarded by the queue's lock. */
final class WakeUp {
    private final Timer timer;
    private final Runnable task;
    private long at = Entry.NEVER;
    private Timer.@Nullable Alarm alarm;

    WakeUp(Timer timer, Runnable task) {
        this.timer = timer;
        this.task = task;
    }

    /** Sees to it that the timer rings at {@code nanos}, or before; {@link Entry#NEVER} asks for nothing. */
    void by(long nanos) {
        if (nanos == Entry.NEVER || (at != Entry.NEVER && at - nanos <= 0)) {
            return;
        }
        if (alarm != null) {
            alarm.cancel();
        }
        at = nanos;
        alarm = timer.at(nanos, task);
    }

    /** The timer has rung. */
    void rung() {
        alarm = null;
        at = Entry.NEVER;
    }
}
