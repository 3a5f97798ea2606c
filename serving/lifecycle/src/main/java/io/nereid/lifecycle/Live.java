// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.spi.Servable;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A loaded version and the count of its open handles. Thread-safe without locks.
 *
 * <p>The count is ≥ 0 while handles are given out, DRAINING + count from then on, and never DRAINING itself again once
 * the end was reported, so that one thread reports it.
 */
final class Live {
    private static final long DRAINING = Long.MIN_VALUE;
    private static final long ENDED = 1L << 61;

    final Servable servable;

    /** Stands for this load where the servable itself should not be held on to. */
    final Object token = new Object();

    private final AtomicLong count = new AtomicLong();
    private final Runnable onDrained;

    Live(Servable servable, Runnable onDrained) {
        this.servable = servable;
        this.onDrained = onDrained;
    }

    /** Takes one handle, or false when none is given out any more. */
    boolean retain() {
        if (count.getAndIncrement() >= 0) {
            return true;
        }
        release();
        return false;
    }

    void release() {
        reportAt(count.decrementAndGet());
    }

    /** Gives out no more handles; the end is reported when the last one is closed, at once if there is none. Once. */
    void drain() {
        reportAt(count.addAndGet(DRAINING));
    }

    /** Open handles, for people. */
    long handles() {
        long n = count.get();
        return n >= 0 ? n : Math.max(0, (n - DRAINING) & (ENDED - 1));
    }

    private void reportAt(long n) {
        // A late retain may lift the count for a moment; then its own release comes here.
        if (n == DRAINING && count.compareAndSet(DRAINING, DRAINING + ENDED)) {
            onDrained.run();
        }
    }
}
