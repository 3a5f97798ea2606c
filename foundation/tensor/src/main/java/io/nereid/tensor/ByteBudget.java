// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A limit on the bytes that requests in flight hold. A transport reserves bytes as they arrive, before it allocates the
 * memory for them. A share is a budget within another one: what is reserved in it counts in both. Thread-safe,
 * lock-free.
 */
public final class ByteBudget {
    private static final LongConsumer NOTHING = wanted -> {};

    private final long limit;
    private final long ample;
    private final @Nullable ByteBudget whole;
    private final AtomicLong used = new AtomicLong();
    private volatile LongConsumer shortage = NOTHING;

    /** Creates a budget of {@code limit} bytes. */
    public ByteBudget(long limit) {
        this(limit, null);
    }

    private ByteBudget(long limit, @Nullable ByteBudget whole) {
        this.limit = limit;
        this.ample = limit - limit / 8;
        this.whole = whole;
    }

    /** A share of at most {@code most} bytes of this budget. */
    public ByteBudget share(long most) {
        return new ByteBudget(most, this);
    }

    /**
     * Sets the action that runs on the reserving thread when a reservation fails, with its bytes, or leaves less than an
     * eighth of the limit, with 0. It must be quick and must not reserve.
     */
    public void onShortage(LongConsumer action) {
        shortage = action;
    }

    /** Reserves {@code bytes}. Returns false, and reserves nothing, when the budget has less left. */
    public boolean tryReserve(long bytes) {
        ByteBudget outer = whole;
        if (outer != null && !outer.tryReserve(bytes)) {
            return false;
        }
        while (true) {
            long now = used.get();
            if (bytes > limit - now) {
                if (outer != null) {
                    outer.release(bytes);
                }
                shortage.accept(bytes);
                return false;
            }
            if (used.compareAndSet(now, now + bytes)) {
                if (now + bytes > ample) {
                    shortage.accept(0);
                }
                return true;
            }
        }
    }

    /**
     * Reserves {@code bytes} of memory that is in use already, also beyond the limit; what exceeds it is missing for
     * others.
     */
    public void reserve(long bytes) {
        ByteBudget outer = whole;
        if (outer != null) {
            outer.reserve(bytes);
        }
        if (used.addAndGet(bytes) > ample) {
            shortage.accept(0);
        }
    }

    /** Returns bytes that {@link #tryReserve(long)} or {@link #reserve(long)} has reserved. */
    public void release(long bytes) {
        used.addAndGet(-bytes);
        ByteBudget outer = whole;
        if (outer != null) {
            outer.release(bytes);
        }
    }

    /** The bytes that are reserved now. */
    public long used() {
        return used.get();
    }

    /** The bytes that are left, of this budget and of the one that it is a share of; negative beyond a limit. */
    public long left() {
        long own = limit - used.get();
        ByteBudget outer = whole;
        return outer == null ? own : Math.min(own, outer.left());
    }

    /** The limit in bytes. */
    public long limit() {
        return limit;
    }
}
