// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.access.quota;

import io.nereid.base.Clock;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * The requests of one model in progress, by key. While the model is saturated (it has refused a request within the last
 * second), a key with more than its fair share of the requests in progress may not add another one, so that a key with
 * few requests finds a place. Keys share with those that have requests in progress or were refused within the last second.
 * Thread-safe, lock-free; the counts are exact, the share is of a moment.
 */
final class ModelShares {
    private static final long RECENT_NANOS = 1_000_000_000L;

    private final Clock clock;
    private final Map<String, Share> byKey = new ConcurrentHashMap<>();
    private final AtomicInteger all = new AtomicInteger();
    private volatile boolean refused;
    private volatile long refusedAt;

    ModelShares(Clock clock) {
        this.clock = clock;
    }

    /** The requests of one key. */
    static final class Share {
        private final AtomicInteger running = new AtomicInteger();
        private volatile boolean refused;
        private volatile long refusedAt;

        private boolean active(long nowNanos) {
            return running.get() > 0 || refused && nowNanos - refusedAt < RECENT_NANOS;
        }
    }

    /** The share of a key, always the same object. */
    Share of(String key) {
        Share known = byKey.get(key);
        return known == null ? byKey.computeIfAbsent(key, k -> new Share()) : known;
    }

    /** Notes that the model has refused a request because it has too many. */
    void saturated(Share share) {
        long nowNanos = clock.nanos();
        refusedAt = nowNanos;
        refused = true;
        share.refusedAt = nowNanos;
        share.refused = true;
    }

    /** Whether the key of a share may begin a request; {@link #begin} counts it. */
    boolean fair(Share own, long nowNanos) {
        if (!refused || nowNanos - refusedAt >= RECENT_NANOS) {
            return true;
        }
        int mine = own.running.get();
        int active = 0;
        for (Share share : byKey.values()) {
            if (share == own || share.active(nowNanos)) {
                active++;
            }
        }
        return active == 1 || mine < Math.max(1, all.get() / active);
    }

    void begin(Share share) {
        share.running.incrementAndGet();
        all.incrementAndGet();
    }

    void end(Share share) {
        share.running.decrementAndGet();
        all.decrementAndGet();
    }
}
