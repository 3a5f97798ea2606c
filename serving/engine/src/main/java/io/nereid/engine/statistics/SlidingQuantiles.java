// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.statistics;

import io.nereid.base.Clock;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.atomic.LongAdder;

/**
 * Quantiles of values over the last minute, with an error of up to three per cent of the value, plus the count and sum
 * of all values. Thread-safe, lock-free. The minute consists of six slices of ten seconds; each slice is a log-linear
 * histogram, and a slice that is older than a minute is replaced by compare-and-set.
 */
public final class SlidingQuantiles {
    private static final long SLICE_NANOS = 10_000_000_000L;
    private static final int SLICES = 6;
    private static final int BITS = 5;
    /** Covers values from 0 to 2^48 - 1 nanoseconds, more than three days. */
    private static final int BUCKETS = (48 - BITS + 1) << BITS;

    /** The values of one slice of ten seconds. */
    private record Slice(long number, AtomicIntegerArray counts) {}

    private final Clock clock;
    private final AtomicReferenceArray<Slice> slices = new AtomicReferenceArray<>(SLICES);
    private final LongAdder count = new LongAdder();
    private final LongAdder sum = new LongAdder();

    SlidingQuantiles(Clock clock) {
        this.clock = clock;
    }

    void record(long value) {
        long number = Math.floorDiv(clock.nanos(), SLICE_NANOS);
        slice(number).counts.incrementAndGet(bucket(Math.max(0, value)));
        count.increment();
        sum.add(value);
    }

    private Slice slice(long number) {
        int at = (int) Math.floorMod(number, (long) SLICES);
        Slice slice = slices.get(at);
        while (slice == null || slice.number < number) {
            Slice made = new Slice(number, new AtomicIntegerArray(BUCKETS));
            if (slices.compareAndSet(at, slice, made)) {
                return made;
            }
            slice = slices.get(at);
        }
        return slice;
    }

    public long count() {
        return count.sum();
    }

    public long sum() {
        return sum.sum();
    }

    /** The value below which the fraction {@code q} of the last minute's values lies; NaN without values. */
    public double quantile(double q) {
        long first = Math.floorDiv(clock.nanos(), SLICE_NANOS) - SLICES + 1;
        long[] counts = new long[BUCKETS];
        long total = 0;
        for (int s = 0; s < SLICES; s++) {
            Slice slice = slices.get(s);
            if (slice != null && slice.number >= first) {
                for (int i = 0; i < BUCKETS; i++) {
                    counts[i] += slice.counts.get(i);
                    total += slice.counts.get(i);
                }
            }
        }
        if (total == 0) {
            return Double.NaN;
        }
        long rank = (long) Math.ceil(q * total);
        long seen = 0;
        int i = 0;
        while (seen + counts[i] < Math.max(1, rank)) {
            seen += counts[i++];
        }
        return middle(i);
    }

    /**
     * The bucket of a value. Values below 2^BITS have a bucket each; above, each power of two is divided into 2^BITS
     * buckets.
     */
    private static int bucket(long value) {
        int high = 63 - Long.numberOfLeadingZeros(value | 1);
        if (high < BITS) {
            return (int) value;
        }
        int shift = high - BITS;
        int bucket = ((shift + 1) << BITS) + (int) (value >>> shift) - (1 << BITS);
        return Math.min(bucket, BUCKETS - 1);
    }

    private static double middle(int bucket) {
        if (bucket < 1 << BITS) {
            return bucket;
        }
        int shift = (bucket >> BITS) - 1;
        long low = (long) ((bucket & ((1 << BITS) - 1)) + (1 << BITS)) << shift;
        return low + ((1L << shift) - 1) / 2.0;
    }
}
