// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

import io.nereid.scheduling.execution.RateLimiter.Member;
import java.util.BitSet;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/**
 * Allocates the instances of one model to runs. The lowest free instance is used first, since its memory is most likely
 * in the processor's caches; with a rate limiter, the limiter selects the instance. Guarded by the lock of the queue
 * that owns it.
 */
public final class InstanceAllocator {
    private final @Nullable Member member;
    /** Instances with a run, and instances that are being retired. */
    private final BitSet busy = new BitSet();

    private int desired;

    public InstanceAllocator(int desired, @Nullable Member member) {
        this.desired = desired;
        this.member = member;
    }

    /** Returns the desired number of instances. */
    public int desired() {
        return desired;
    }

    /** Allocates an instance for one run; -1 if none is free, or if the rate limiter grants none now. */
    public int take() {
        int instance = member == null ? busy.nextClearBit(0) : member.acquire(busy, desired);
        if (instance < 0 || instance >= desired) {
            return -1;
        }
        busy.set(instance);
        return instance;
    }

    /**
     * Returns whether an instance whose run has ended was removed by {@link #resize} and must be retired. It stays
     * allocated until {@link #giveBack}, so that it gets no run while its memory is freed.
     */
    public boolean retires(int instance) {
        return instance >= desired;
    }

    /** Marks an instance as free. */
    public void giveBack(int instance) {
        busy.clear(instance);
    }

    /**
     * Changes the number of instances; allocates those idle ones that were removed and passes them to {@code retired}.
     */
    public void resize(int count, IntConsumer retired) {
        int before = desired;
        if (member != null) {
            member.resize(count);
        }
        desired = count;
        for (int i = count; i < before; i++) {
            if (!busy.get(i)) {
                busy.set(i);
                retired.accept(i);
            }
        }
    }
}
