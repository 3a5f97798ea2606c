// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.lifecycle.serving;

import io.nereid.spi.Servable;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLongArray;

/**
 * A loaded servable with a count of its open handles. Thread-safe without locks.
 *
 * <p><b>Striped count.</b> A single counter would be one cache line that all processors write for every request. The
 * count is therefore divided into stripes: a handle is counted on the stripe of the thread that took it, and must be
 * released on the same stripe, by any thread. A stripe alone can become neither negative nor wrong in the long run;
 * only the sum is of interest, and only whether it is zero.
 *
 * <p><b>Why reading the stripes one by one is correct.</b> {@link #retain} first increments, then reads
 * {@code draining}; {@link #drain} first sets {@code draining}, then reads the stripes. With sequentially consistent
 * accesses, either retain sees the flag and takes its increment back, or drain sees the increment. After the flag is
 * set no increment stays, so each stripe only falls (except for short increments that are taken back): stripes that are
 * read as zero one after the other are zero together. A thread that finds a stripe above zero may return, because the
 * thread that brings that stripe to zero checks again. {@code ended} makes sure that only one of them reports the end.
 */
public final class LiveServable {
    /** A power of two, at least the number of processors but at most 16. */
    private static final int STRIPES =
            Integer.highestOneBit(Math.min(16, Runtime.getRuntime().availableProcessors()) * 2 - 1);

    /** Longs between two stripes: 128 bytes, because processors prefetch cache lines in pairs. */
    private static final int STRIDE = 16;

    public final Servable servable;

    /** Identifies this load without a reference to the servable, which would keep it in memory. */
    public final Object token = new Object();

    private final AtomicLongArray counts = new AtomicLongArray((STRIPES + 1) * STRIDE);
    private final AtomicBoolean ended = new AtomicBoolean();
    private final Runnable onDrained;
    private volatile boolean draining;

    public LiveServable(Servable servable, Runnable onDrained) {
        this.servable = servable;
        this.onDrained = onDrained;
    }

    /** Adds a handle and returns the stripe to release it on; -1 if the servable is draining. */
    public int retain() {
        // The order is essential, see the class comment: first count, then read the flag.
        int stripe = (((int) Thread.currentThread().getId() & (STRIPES - 1)) + 1) * STRIDE;
        counts.getAndIncrement(stripe);
        if (!draining) {
            return stripe;
        }
        // Draining: take the increment back. This may be the release that brings the sum to zero.
        release(stripe);
        return -1;
    }

    /** Releases a handle on the stripe that {@link #retain} returned. */
    public void release(int stripe) {
        counts.getAndDecrement(stripe);
        if (draining) {
            reportIfUnused();
        }
    }

    /**
     * Stops new handles. {@code onDrained} runs when the last handle is released, or at once if there is none. Called
     * once.
     */
    public void drain() {
        // First set the flag, then read the stripes: the reverse order could miss a handle.
        draining = true;
        reportIfUnused();
    }

    private void reportIfUnused() {
        for (int i = STRIDE; i < counts.length(); i += STRIDE) {
            if (counts.get(i) != 0) {
                // The thread that releases the last handle of this stripe sees `draining` and comes here.
                return;
            }
        }
        if (ended.compareAndSet(false, true)) {
            onDrained.run();
        }
    }
}
