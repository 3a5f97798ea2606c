// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.placement;

import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;

/**
 * A loaded copy of a model on a pod. Thread-safe: {@link CopyTable#acquire} counts a request in, {@link #release} counts
 * it out. A copy that is closed takes no further request, and a copy with requests in flight is never unloaded.
 */
public final class ModelCopy {
    private static final int CLOSED = 1 << 30;

    private final String model;
    private final PodLoad load;
    private final ModelUsage usage;
    private final AtomicInteger state = new AtomicInteger();
    private final AtomicLong lastUsed;

    ModelCopy(String model, PodLoad load, ModelUsage usage, long now) {
        this.model = model;
        this.load = load;
        this.usage = usage;
        this.lastUsed = new AtomicLong(now);
    }

    /** The model. */
    public String model() {
        return model;
    }

    /** The pod. */
    public String pod() {
        return load.pod();
    }

    /**
     * Ends a request.
     *
     * @param busyNanos how long it has occupied a worker of the pod, without waiting; the cost by which copies are counted
     */
    public void release(long busyNanos) {
        usage.end(busyNanos);
        load.end();
        state.decrementAndGet();
    }

    boolean tryAcquire(long now) {
        while (true) {
            int s = state.get();
            if ((s & CLOSED) != 0) {
                return false;
            }
            if (state.compareAndSet(s, s + 1)) {
                load.begin();
                usage.begin(now);
                lastUsed.lazySet(now);
                return true;
            }
        }
    }

    /** Closes the copy if it has no request in flight; a request that comes at the same time wins or fails as a whole. */
    boolean closeIfIdle() {
        return state.compareAndSet(0, CLOSED);
    }

    /** Closes the copy: requests in flight end, no new one begins. */
    void close() {
        state.updateAndGet(s -> s | CLOSED);
    }

    void used(long now) {
        lastUsed.accumulateAndGet(now, (a, b) -> b - a > 0 ? b : a);
    }

    boolean isIdle() {
        return (state.get() & ~CLOSED) == 0;
    }

    long lastUsed() {
        return lastUsed.get();
    }

    double utilisation() {
        return load.utilisation();
    }
}
