// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

import io.nereid.base.Clock;
import io.nereid.base.Timer;
import java.util.ArrayList;
import java.util.List;

/** A clock and a timer that a test advances. Confined to one thread. */
public final class ManualTime implements Clock, Timer {
    private final List<Due> due = new ArrayList<>();
    private long now = 1_000;

    @Override
    public long nanos() {
        return now;
    }

    @Override
    public long millis() {
        return now / 1_000_000;
    }

    @Override
    public ScheduledTask after(long nanos, Runnable task) {
        Due d = new Due(now + nanos, task);
        due.add(d);
        return () -> due.remove(d);
    }

    /** Advances the time and runs the tasks that become due. */
    public void advance(long nanos) {
        long end = now + nanos;
        while (true) {
            Due next = null;
            for (Due d : due) {
                if (d.at <= end && (next == null || d.at < next.at)) {
                    next = d;
                }
            }
            if (next == null) {
                now = end;
                return;
            }
            due.remove(next);
            now = Math.max(now, next.at);
            next.task.run();
        }
    }

    /** Advances the time without running tasks, to simulate the duration of a run. */
    public void spend(long nanos) {
        now += nanos;
    }

    public int scheduled() {
        return due.size();
    }

    @Override
    public void close() {
        due.clear();
    }

    private static final class Due {
        final long at;
        final Runnable task;

        Due(long at, Runnable task) {
            this.at = at;
            this.task = task;
        }
    }
}
