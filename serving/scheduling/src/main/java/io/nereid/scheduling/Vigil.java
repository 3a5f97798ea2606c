// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * What falls due by itself: requests that wait, at their deadline or when they have been in the backlog for too long, and
 * sequences with a place that have been silent for too long, quietest first. One alarm rings for all of it. Guarded by
 * the batcher's lock.
 */
final class Vigil {
    static final long NEVER = Long.MAX_VALUE;

    private final long maxIdle;
    private final Timer timer;
    private final Runnable onAlarm;
    private final TreeSet<SequenceJob> falling = new TreeSet<>();
    private @Nullable Strand quietest;
    private @Nullable Strand liveliest;
    private long alarmAt = NEVER;
    private Timer.@Nullable Alarm alarm;

    Vigil(long maxIdle, Timer timer, Runnable onAlarm) {
        this.maxIdle = maxIdle;
        this.timer = timer;
        this.onAlarm = onAlarm;
    }

    /** A request waits, or waits elsewhere than before. */
    void waits(SequenceJob item) {
        waitsNoMore(item);
        long due = item.deadlineNanos();
        long timeout = item.strand.backlogged ? item.job.request().options().timeoutNanos() : 0;
        item.due = timeout > 0 ? earlier(due, item.since + timeout) : due;
        if (item.due != NEVER) {
            falling.add(item);
        }
    }

    void waitsNoMore(SequenceJob item) {
        if (item.due != NEVER) {
            falling.remove(item);
            item.due = NEVER;
        }
    }

    /** A request that has waited too long, or null. */
    @Nullable SequenceJob late(long now) {
        return falling.isEmpty() || falling.first().due - now > 0 ? null : falling.first();
    }

    /** A sequence was heard of. */
    void heard(Strand s, long now) {
        leave(s);
        s.heard = now;
        s.quieter = liveliest;
        if (liveliest == null) {
            quietest = s;
        } else {
            liveliest.livelier = s;
        }
        liveliest = s;
        s.listed = true;
    }

    /** A sequence may be silent from now on. */
    void leave(Strand s) {
        if (!s.listed) {
            return;
        }
        s.listed = false;
        if (s.quieter == null) {
            quietest = s.livelier;
        } else {
            s.quieter.livelier = s.livelier;
        }
        if (s.livelier == null) {
            liveliest = s.quieter;
        } else {
            s.livelier.quieter = s.quieter;
        }
        s.quieter = null;
        s.livelier = null;
    }

    /** A sequence that has been silent too long, or null. */
    @Nullable Strand silent(long now) {
        Strand s = quietest;
        return s == null || now - s.heard - maxIdle < 0 ? null : s;
    }

    /** Sees to it that the alarm rings when something is due, {@code other} included. */
    void arm(long other) {
        long at = falling.isEmpty() ? other : earlier(other, falling.first().due);
        if (quietest != null) {
            at = earlier(at, quietest.heard + maxIdle);
        }
        if (at == NEVER || (alarmAt != NEVER && alarmAt - at <= 0)) {
            return;
        }
        disarm();
        alarmAt = at;
        alarm = timer.at(at, onAlarm);
    }

    /** The alarm has rung, or is not needed any more. */
    void disarm() {
        if (alarm != null) {
            alarm.cancel();
        }
        alarm = null;
        alarmAt = NEVER;
    }

    static long earlier(long a, long b) {
        if (a == NEVER || b == NEVER) {
            return a == NEVER ? b : a;
        }
        return a - b <= 0 ? a : b;
    }
}
