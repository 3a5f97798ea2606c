// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import io.nereid.base.ServingException;
import java.util.concurrent.atomic.AtomicIntegerFieldUpdater;

/**
 * A request at a {@link RevisionActivator}: it may wait in the queue, then runs, then ends once. Thread-safe: its state
 * changes by compare-and-set, so that exactly one of the competing threads (admission, timeout, cancellation) takes it
 * out of the queue.
 */
abstract class RevisionRequest {
    private static final int NEW = 0;
    private static final int WAITING = 1;
    private static final int RUNNING = 2;
    private static final int ENDED = 3;
    private static final AtomicIntegerFieldUpdater<RevisionRequest> STATE =
            AtomicIntegerFieldUpdater.newUpdater(RevisionRequest.class, "state");

    final RevisionActivator activator;

    /** When it arrived, in nanoseconds. */
    final long arrived;

    /** When it was admitted. */
    long admitted;

    /** The latest time until which it may wait. Written before it waits. */
    long waitUntil;

    /** Whether it holds a permit of the concurrency limit. Written before it runs. */
    boolean permit;

    private volatile int state = NEW;

    RevisionRequest(RevisionActivator activator, long arrived) {
        this.activator = activator;
        this.arrived = arrived;
        this.admitted = arrived;
    }

    /** Runs the request, on any thread. Throws what the handler throws. */
    abstract void dispatch();

    /** Runs the request after it has waited; responds to failures itself. */
    abstract void resume();

    /** Responds with an error to a request that was not admitted. */
    abstract void rejected(ServingException e);

    /** The memory that it uses while it waits. */
    abstract long bytes();

    /** The client's deadline in nanoseconds; {@link Long#MAX_VALUE} for none. */
    abstract long deadline();

    final void setRunning() {
        state = RUNNING;
    }

    final void enqueue() {
        state = WAITING;
    }

    final boolean isWaiting() {
        return state == WAITING;
    }

    /** Takes it out of the queue; false when another thread has done so. */
    final boolean dequeue() {
        return STATE.compareAndSet(this, WAITING, RUNNING);
    }

    /** Puts a running request back into the queue; false when it has ended. */
    final boolean requeue() {
        return STATE.compareAndSet(this, RUNNING, WAITING);
    }

    final boolean isEnded() {
        return state == ENDED;
    }

    /** Ends it with the HTTP status of its response. Later calls have no effect. */
    final boolean end(int status) {
        while (true) {
            int now = state;
            if (now == ENDED) {
                return false;
            }
            if (STATE.compareAndSet(this, now, ENDED)) {
                activator.ended(this, status, now == WAITING);
                return true;
            }
        }
    }
}
