// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.base.ServingException;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

/**
 * One request on its way through a gate: it may wait, then runs, then ends, once. Thread-safe: its state changes hands by
 * compare-and-set.
 */
abstract class Passage {
    private static final int NEW = 0;
    private static final int WAITING = 1;
    private static final int RUNNING = 2;
    private static final int ENDED = 3;
    private static final AtomicIntegerFieldUpdater<Passage> STATE =
            AtomicIntegerFieldUpdater.newUpdater(Passage.class, "state");

    final RevisionGate gate;

    /** When it came, in nanoseconds. */
    final long arrived;

    /** When it was let through. */
    long admitted;

    /** Until when it may wait. Written before it waits. */
    long waitUntil;

    /** Whether it holds one of the places that are limited. Written before it runs. */
    boolean permit;

    private volatile int state = NEW;

    Passage(RevisionGate gate, long arrived) {
        this.gate = gate;
        this.arrived = arrived;
        this.admitted = arrived;
    }

    /** Runs the request, on any thread. Throws what the request's handler throws. */
    abstract void go();

    /** Runs the request after it has waited; failures are answered. */
    abstract void resume();

    /** Answers that it cannot be; it has not run. */
    abstract void refused(ServingException e);

    /** How much memory it keeps while it waits. */
    abstract long bytes();

    /** When its client gives up, in nanoseconds; {@link Long#MAX_VALUE} when it does not say. */
    abstract long deadline();

    final void runAtOnce() {
        state = RUNNING;
    }

    final void waitInLine() {
        state = WAITING;
    }

    final boolean isWaiting() {
        return state == WAITING;
    }

    /** Takes it out of the line; false when somebody else has. */
    final boolean leaveLine() {
        return STATE.compareAndSet(this, WAITING, RUNNING);
    }

    final boolean isEnded() {
        return state == ENDED;
    }

    /** Ends it with the status of HTTP that its answer has, or would have; what comes later does nothing. */
    final boolean end(int status) {
        while (true) {
            int now = state;
            if (now == ENDED) {
                return false;
            }
            if (STATE.compareAndSet(this, now, ENDED)) {
                gate.ended(this, status, now == WAITING);
                return true;
            }
        }
    }
}
