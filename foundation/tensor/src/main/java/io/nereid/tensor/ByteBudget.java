// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import java.util.concurrent.atomic.AtomicLong;

/** A process-wide limit on the bytes of requests in flight, reserved before a body is read. Thread-safe, lock-free. */
public final class ByteBudget {
    private final long limit;
    private final AtomicLong used = new AtomicLong();

    /** A budget of {@code limit} bytes. */
    public ByteBudget(long limit) {
        this.limit = limit;
    }

    /** Takes {@code bytes} from the budget; false, and nothing taken, when less is left. */
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

    /** Gives back what {@link #tryReserve(long)} took. */
    public void release(long bytes) {
        used.addAndGet(-bytes);
    }

    /** Bytes taken at present. */
    public long used() {
        return used.get();
    }

    /** The limit in bytes. */
    public long limit() {
        return limit;
    }
}
