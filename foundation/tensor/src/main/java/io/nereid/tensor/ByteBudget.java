// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import java.util.concurrent.atomic.AtomicLong;

/**
 * A limit on the total bytes of all requests in flight. A transport reserves the size of a body before it reads the
 * body. Thread-safe, lock-free.
 */
public final class ByteBudget {
    private final long limit;
    private final AtomicLong used = new AtomicLong();

    /** Creates a budget of {@code limit} bytes. */
    public ByteBudget(long limit) {
        this.limit = limit;
    }

    /** Reserves {@code bytes}. Returns false, and reserves nothing, when the budget has less left. */
    public boolean tryReserve(long bytes) {
        while (true) {
            long now = used.get();
            if (bytes > limit - now) {
                return false;
            }
            if (used.compareAndSet(now, now + bytes)) {
                return true;
            }
        }
    }

    /** Returns bytes that {@link #tryReserve(long)} has reserved. */
    public void release(long bytes) {
        used.addAndGet(-bytes);
    }

    /** The bytes that are reserved now. */
    public long used() {
        return used.get();
    }

    /** The limit in bytes. */
    public long limit() {
        return limit;
    }
}
