// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/** What the requests of one model have used, over all its copies. Thread-safe; times are nanoseconds of {@code Clock}. */
final class ModelUsage {
    private final LongAdder requests = new LongAdder();
    private final LongAdder busyNanos = new LongAdder();
    private final AtomicLong lastUsed;

    ModelUsage(long lastUsed) {
        this.lastUsed = new AtomicLong(lastUsed);
    }

    void begin(long now) {
        requests.increment();
        used(now);
    }

    void add(long begun, long busy, long now) {
        requests.add(begun);
        busyNanos.add(Math.max(0, busy));
        used(now);
    }

    void end(long busy) {
        busyNanos.add(Math.max(0, busy));
    }

    /** Moves the time of the last use; a clock that another thread read a moment earlier does not move it back. */
    void used(long now) {
        lastUsed.accumulateAndGet(now, (a, b) -> b - a > 0 ? b : a);
    }

    long requests() {
        return requests.sum();
    }

    long busyNanos() {
        return busyNanos.sum();
    }

    long lastUsed() {
        return lastUsed.get();
    }
}
