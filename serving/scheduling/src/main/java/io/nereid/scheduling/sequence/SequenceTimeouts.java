// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.sequence;

import io.nereid.scheduling.execution.QueueTimer;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * The timeouts of a sequence batcher, with one timer task for all of them:
 *
 * <ul>
 *   <li>queued requests, at their deadline or at the end of their timeout in the backlog, sorted by time;
 *   <li>idle sequences with a slot. All have the same maximum idle time, so a linked list in the order of the last
 *       request is always sorted: a request moves its sequence to the end in constant time.
 * </ul>
 *
 * Guarded by the batcher's lock.
 */
final class SequenceTimeouts {
    static final long NEVER = QueueTimer.NEVER;

    private final long maxIdle;
    private final QueueTimer timer;
    private final TreeSet<SequenceJob> queueTimeouts = new TreeSet<>();
    private @Nullable ActiveSequence firstIdle;
    private @Nullable ActiveSequence lastIdle;

    SequenceTimeouts(long maxIdle, QueueTimer timer) {
        this.maxIdle = maxIdle;
        this.timer = timer;
    }

    /** Adds a queued request, or updates it after its sequence has left the backlog. */
    void add(SequenceJob item) {
        remove(item);
        long due = item.deadlineNanos();
        long timeout = item.sequence.backlogged ? item.job.request().options().timeoutNanos() : 0;
        item.due = timeout > 0 ? QueueTimer.earlier(due, item.since + timeout) : due;
        if (item.due != NEVER) {
            queueTimeouts.add(item);
        }
    }

    /** Removes a request that is no longer queued. */
    void remove(SequenceJob item) {
        if (item.due != NEVER) {
            queueTimeouts.remove(item);
            item.due = NEVER;
        }
    }

    /** Returns a request that has timed out, or null. */
    @Nullable SequenceJob timedOut(long now) {
        return queueTimeouts.isEmpty() || queueTimeouts.first().due - now > 0 ? null : queueTimeouts.first();
    }

    /** Restarts the idle time of a sequence. */
    void restartIdle(ActiveSequence sequence, long now) {
        stopIdle(sequence);
        sequence.idleSince = now;
        sequence.previousIdle = lastIdle;
        if (lastIdle == null) {
            firstIdle = sequence;
        } else {
            lastIdle.nextIdle = sequence;
        }
        lastIdle = sequence;
        sequence.inIdleList = true;
    }

    /** Removes a sequence, whose idle time no longer matters. */
    void stopIdle(ActiveSequence sequence) {
        if (!sequence.inIdleList) {
            return;
        }
        sequence.inIdleList = false;
        if (sequence.previousIdle == null) {
            firstIdle = sequence.nextIdle;
        } else {
            sequence.previousIdle.nextIdle = sequence.nextIdle;
        }
        if (sequence.nextIdle == null) {
            lastIdle = sequence.previousIdle;
        } else {
            sequence.nextIdle.previousIdle = sequence.previousIdle;
        }
        sequence.previousIdle = null;
        sequence.nextIdle = null;
    }

    /** Returns a sequence that has been idle too long, or null. */
    @Nullable ActiveSequence idle(long now) {
        ActiveSequence sequence = firstIdle;
        return sequence == null || now - sequence.idleSince - maxIdle < 0 ? null : sequence;
    }

    /** Sets the timer to the earliest timeout or to {@code other}, whichever is earlier. */
    void arm(long other) {
        long at = queueTimeouts.isEmpty() ? other : QueueTimer.earlier(other, queueTimeouts.first().due);
        if (firstIdle != null) {
            at = QueueTimer.earlier(at, firstIdle.idleSince + maxIdle);
        }
        timer.schedule(at);
    }

    /** Called when the timer task has started. */
    void fired() {
        timer.fired();
    }

    /** Called when the timer task is no longer needed. */
    void disarm() {
        timer.cancel();
    }
}
