// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle;

import io.nereid.spi.Servable;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * A loaded version and the count of its open handles. Thread-safe without locks.
 *
 * <p>The count is striped, so that processors do not wait for each other: a handle is counted on the stripe of the thread
 * that took it, and given back there by whichever thread. Once draining, nothing is added to stay, so that stripes that
 * are read as zero one after the other are zero together. Of those who find that, one reports it.
 */
final class Live {
    /** As many as processors, within reason. */
    private static final int STRIPES =
            Integer.highestOneBit(Math.min(16, Runtime.getRuntime().availableProcessors()) * 2 - 1);

    /** Longs between two stripes: no two share a cache line, nor a pair of lines that is fetched together. */
    private static final int STRIDE = 16;

    final Servable servable;

    /** Stands for this load where the servable itself should not be held on to. */
    final Object token = new Object();

    private final AtomicLongArray counts = new AtomicLongArray((STRIPES + 1) * STRIDE);
    private final AtomicBoolean ended = new AtomicBoolean();
    private final Runnable onDrained;
    private volatile boolean draining;

    Live(Servable servable, Runnable onDrained) {
        this.servable = servable;
        this.onDrained = onDrained;
    }

    /** Takes one handle: the stripe to give it back to; or -1 when none is given out any more. */
    int retain() {
        int stripe = (((int) Thread.currentThread().getId() & (STRIPES - 1)) + 1) * STRIDE;
        counts.getAndIncrement(stripe);
        if (!draining) {
            return stripe;
        }
        release(stripe);
        return -1;
    }

    /** Gives a handle back. */
    void release(int stripe) {
        counts.getAndDecrement(stripe);
        if (draining) {
            reportIfUnused();
        }
    }

    /** Gives out no more handles; the end is reported when the last one is closed, at once if there is none. Once. */
    void drain() {
        draining = true;
        reportIfUnused();
    }

    private void reportIfUnused() {
        for (int i = STRIDE; i < counts.length(); i += STRIDE) {
            if (counts.get(i) != 0) {
                // Whoever holds that one comes here after giving it back.
                return;
            }
        }
        if (ended.compareAndSet(false, true)) {
            onDrained.run();
        }
    }
}
