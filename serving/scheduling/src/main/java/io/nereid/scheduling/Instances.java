// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.scheduling.RateLimiter.Member;
import java.util.BitSet;
import java.util.function.IntConsumer;
import org.jspecify.annotations.Nullable;

/**
 * The places where the runs of one model go on, and how many there should be. The lowest free one is taken first, so that
 * what it has in caches is used again; under a rate limiter, the one that it grants. Guarded by the queue's lock.
 */
final class Instances {
    private final @Nullable Member member;
    /** Those with a run, and those that are being retired. */
    private final BitSet busy = new BitSet();

    private int wanted;

    Instances(int wanted, @Nullable Member member) {
        this.wanted = wanted;
        this.member = member;
    }

    /** How many there should be. */
    int wanted() {
        return wanted;
    }

    /** An instance for one run, or -1. */
    int take() {
        int instance = member == null ? busy.nextClearBit(0) : member.acquire(busy, wanted);
        if (instance < 0 || instance >= wanted) {
            return -1;
        }
        busy.set(instance);
        return instance;
    }

    /** Whether an instance whose run has ended is one too many now; it stays taken until it is given back. */
    boolean retires(int instance) {
        return instance >= wanted;
    }

    /** An instance is free again. */
    void giveBack(int instance) {
        busy.clear(instance);
    }

    /** Changes their number; idle ones that are too many are taken and told. */
    void resize(int count, IntConsumer retired) {
        int before = wanted;
        if (member != null) {
            member.resize(count);
        }
        wanted = count;
        for (int i = count; i < before; i++) {
            if (!busy.get(i)) {
                busy.set(i);
                retired.accept(i);
            }
        }
    }
}
