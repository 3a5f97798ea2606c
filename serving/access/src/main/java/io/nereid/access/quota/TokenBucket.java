// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.quota;

import java.util.concurrent.atomic.AtomicLong;

/**
 * A limit on a rate: units come in evenly, up to a store of one second's units (at least one). A request may take more
 * than the store holds when the store is full, and then owes the rest, so that a large request is slowed down and not
 * refused for ever. Thread-safe, lock-free.
 *
 * <p>The state is one number, the moment at which the store was, or will be, empty ("theoretical arrival time" of the
 * generic cell rate algorithm, ITU-T I.371).
 */
public final class TokenBucket {
    private static final double SECOND = 1e9;

    private final double nanosPerUnit;
    private final long storeNanos;
    private final AtomicLong emptyAt;

    /**
     * Creates a full bucket.
     *
     * @param unitsPerSecond the rate, above 0
     * @param nowNanos the time on the clock of later calls
     */
    public TokenBucket(double unitsPerSecond, long nowNanos) {
        this.nanosPerUnit = SECOND / unitsPerSecond;
        this.storeNanos = (long) Math.max(SECOND, nanosPerUnit);
        this.emptyAt = new AtomicLong(nowNanos - storeNanos);
    }

    /**
     * Takes units.
     *
     * @return 0 when they were taken, else the nanoseconds after which a try may succeed; then none were taken
     */
    public long take(double units, long nowNanos) {
        long cost = (long) Math.min(units * nanosPerUnit, Long.MAX_VALUE / 4.0);
        while (true) {
            long before = emptyAt.get();
            long from = Math.max(before, nowNanos - storeNanos);
            long after = from + cost;
            boolean full = from == nowNanos - storeNanos;
            if (after > nowNanos && !full) {
                // a request of more units than the store holds waits until the store is full
                long missing = cost > storeNanos ? from + storeNanos - nowNanos : after - nowNanos;
                return Math.max(1, missing);
            }
            if (emptyAt.compareAndSet(before, after)) {
                return 0;
            }
        }
    }
}
