// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.quota;

import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The requests of one model in progress, by key. While the model is saturated (it has refused a request within the last
 * second, or its own quota is used up), a key with more than its fair share of the requests in progress may not add
 * another one, so that a key with few requests finds a place. Thread-safe, lock-free; the counts are exact, the share is
 * of a moment.
 */
final class ModelShares {
    private static final long SATURATED_NANOS = 1_000_000_000L;

    private final Map<String, AtomicInteger> byKey = new ConcurrentHashMap<>();
    private final AtomicInteger all = new AtomicInteger();
    private volatile long saturatedUntil = Long.MIN_VALUE;

    /** Notes that the model has refused a request because it has too many. */
    void saturated(long nowNanos) {
        saturatedUntil = nowNanos + SATURATED_NANOS;
    }

    /** Whether a key may begin a request; {@link #begin} counts it. */
    boolean fair(String key, long nowNanos) {
        long until = saturatedUntil;
        if (until == Long.MIN_VALUE || nowNanos - until >= 0) {
            return true;
        }
        return belowShare(key);
    }

    /** Whether a key has fewer requests in progress than its share of all. */
    boolean belowShare(String key) {
        AtomicInteger own = byKey.get(key);
        int mine = own == null ? 0 : own.get();
        int active = mine == 0 ? 1 : 0;
        for (AtomicInteger count : byKey.values()) {
            if (count.get() > 0) {
                active++;
            }
        }
        return active == 1 || mine < Math.max(1, all.get() / active);
    }

    void begin(String key) {
        byKey.computeIfAbsent(key, k -> new AtomicInteger()).incrementAndGet();
        all.incrementAndGet();
    }

    void end(String key) {
        AtomicInteger own = byKey.get(key);
        if (own != null) {
            own.decrementAndGet();
        }
        all.decrementAndGet();
    }
}
