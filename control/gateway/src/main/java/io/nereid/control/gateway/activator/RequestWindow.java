// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway.activator;

import io.nereid.control.core.ObservedState.Traffic;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReferenceArray;
import org.jspecify.annotations.Nullable;

/**
 * Statistics of the requests of the last minute: their number, the failures, and the 99th percentile of their time,
 * exact to one eighth. Thread-safe without locks: a ring of slots of five seconds, each of which is replaced by the
 * first thread that records in its next period.
 */
final class RequestWindow {
    private static final long SLOT_NANOS = 5_000_000_000L;
    private static final int KEPT = 12;
    private static final int SLOTS = KEPT + 1;
    /** Eight buckets for each power of two of microseconds, up to half an hour. */
    private static final int BUCKETS = 8 * 28;

    private static final class Slot {
        final long number;
        final AtomicIntegerArray counts = new AtomicIntegerArray(BUCKETS + 1);

        Slot(long number) {
            this.number = number;
        }
    }

    private final AtomicReferenceArray<Slot> slots = new AtomicReferenceArray<>(SLOTS);

    /** Records a request that has ended. */
    void record(long now, long nanos, boolean error) {
        long number = Math.floorDiv(now, SLOT_NANOS);
        int at = Math.floorMod(number, SLOTS);
        Slot slot = slots.get(at);
        if (slot == null || slot.number != number) {
            slot = renew(at, slot, number);
        }
        slot.counts.getAndIncrement(bucket(nanos));
        if (error) {
            slot.counts.getAndIncrement(BUCKETS);
        }
    }

    private Slot renew(int at, @Nullable Slot old, long number) {
        Slot fresh = new Slot(number);
        Slot found = slots.compareAndExchange(at, old, fresh);
        // A thread that was delayed for a minute counts in a newer slot, which is harmless: one request is dated too
        // late.
        return found == null || found == old ? fresh : found;
    }

    /** The statistics of the last minute. */
    Traffic read(long now) {
        long last = Math.floorDiv(now, SLOT_NANOS);
        long[] sums = new long[BUCKETS];
        long requests = 0;
        long errors = 0;
        for (int i = 0; i < SLOTS; i++) {
            Slot slot = slots.get(i);
            if (slot == null || slot.number > last || last - slot.number >= KEPT) {
                continue;
            }
            errors += slot.counts.get(BUCKETS);
            for (int b = 0; b < BUCKETS; b++) {
                long count = slot.counts.get(b);
                sums[b] += count;
                requests += count;
            }
        }
        if (requests == 0) {
            return Traffic.NONE;
        }
        long rank = requests - requests / 100;
        long seen = 0;
        int at = 0;
        while (at < BUCKETS - 1 && (seen += sums[at]) < rank) {
            at++;
        }
        return new Traffic(requests, errors, upperMicros(at) / 1000.0);
    }

    /**
     * The bucket of a time: one for each microsecond below 8, then by the exponent and the three bits after the leading
     * one.
     */
    private static int bucket(long nanos) {
        long micros = Math.max(0, nanos / 1000);
        if (micros < 8) {
            return (int) micros;
        }
        int power = 63 - Long.numberOfLeadingZeros(micros);
        int within = (int) (micros >>> (power - 3)) & 7;
        return Math.min(BUCKETS - 1, 8 * (power - 2) + within);
    }

    private static double upperMicros(int bucket) {
        if (bucket < 8) {
            return bucket + 1.0;
        }
        int power = bucket / 8 + 2;
        return (double) (8L + bucket % 8 + 1) * (1L << (power - 3));
    }
}
