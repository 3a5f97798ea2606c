// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.statistics;

import java.util.concurrent.atomic.AtomicReferenceArray;
import java.util.concurrent.atomic.LongAdder;
import org.jspecify.annotations.Nullable;

/** A histogram with fixed upper bounds, and the sum of the values. Thread-safe, lock-free. */
public final class Histogram {
    /** Bounds for durations in nanoseconds: 50 µs to 30 s. */
    static final long[] DURATIONS = {
        50_000,
        100_000,
        250_000,
        500_000,
        1_000_000,
        2_500_000,
        5_000_000,
        10_000_000,
        25_000_000,
        50_000_000,
        100_000_000,
        250_000_000,
        500_000_000,
        1_000_000_000,
        2_500_000_000L,
        5_000_000_000L,
        10_000_000_000L,
        30_000_000_000L
    };

    /** Bounds for batch sizes. */
    private static final long[] SIZES = {1, 2, 4, 8, 16, 32, 64, 128, 256};

    private final long[] bounds;

    /** The counter of each bucket, made on the first value: most of a server's models have values in few buckets. */
    private final AtomicReferenceArray<@Nullable LongAdder> counts;

    private final LongAdder sum = new LongAdder();
    public final Exemplars exemplars;

    /** The bounds for batch sizes, ascending. */
    public static long[] sizeBounds() {
        return SIZES.clone();
    }

    /** The bounds for durations, in nanoseconds, ascending. */
    public static long[] durationBounds() {
        return DURATIONS.clone();
    }

    Histogram(long[] bounds) {
        this.bounds = bounds;
        this.exemplars = new Exemplars(bounds);
        this.counts = new AtomicReferenceArray<>(bounds.length + 1);
    }

    void record(long value) {
        counter(bucket(bounds, value)).increment();
        if (value != 0) {
            sum.add(value);
        }
    }

    private LongAdder counter(int bucket) {
        LongAdder counter = counts.get(bucket);
        while (counter == null) {
            counter = new LongAdder();
            if (!counts.compareAndSet(bucket, null, counter)) {
                counter = counts.get(bucket);
            }
        }
        return counter;
    }

    /** The index of the first bound that is not below the value; the number of bounds if there is none. */
    static int bucket(long[] bounds, long value) {
        int i = 0;
        while (i < bounds.length && value > bounds[i]) {
            i++;
        }
        return i;
    }

    public long[] bounds() {
        return bounds;
    }

    /**
     * The number of values above bound {@code i - 1} and up to bound {@code i}; the last index counts the values above
     * all bounds.
     */
    public long count(int i) {
        LongAdder counter = counts.get(i);
        return counter == null ? 0 : counter.sum();
    }

    /** The number of values. */
    long count() {
        long all = 0;
        for (int i = 0; i < counts.length(); i++) {
            all += count(i);
        }
        return all;
    }

    public long sum() {
        return sum.sum();
    }
}
