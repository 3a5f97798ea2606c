// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import java.util.Arrays;

/**
 * The average of a metric over the last seconds, in buckets of one second. Confined to the thread that owns it; times are
 * nanoseconds of {@code Clock.nanos()}.
 *
 * <p>A window that is younger than its length averages over its life; seconds in the middle that nobody reported count as
 * zero; seconds at the end that nobody reported yet do not count at all, until a whole window has passed in silence.
 */
public final class MetricWindow {
    private static final long SECOND = 1_000_000_000L;
    private static final double SMALLEST_COEFFICIENT = 0.2;
    private static final double WEIGHT = 0.9999;
    private static final double LARGEST = 1e15;

    /** How a window weighs its seconds. */
    public enum Aggregation {
        /** All seconds alike. */
        LINEAR,
        /** The weight falls with age: the newest second by a coefficient of 0.2 at least, each older one by the rest of it. */
        WEIGHTED_EXPONENTIAL
    }

    private final Aggregation aggregation;
    private double[] buckets;
    private double coefficient;
    private boolean written;
    private long first;
    private long last;

    /**
     * A window of so many seconds.
     *
     * @param seconds its length, 1 at least
     * @param aggregation how it weighs them
     */
    public MetricWindow(int seconds, Aggregation aggregation) {
        this.aggregation = aggregation;
        this.buckets = new double[Math.max(1, seconds)];
        this.coefficient = coefficient(buckets.length);
    }

    /** The weight of the newest of so many buckets. */
    static double coefficient(int buckets) {
        return Math.max(SMALLEST_COEFFICIENT, 1 - Math.pow(1 - WEIGHT, 1.0 / buckets));
    }

    /** The window's length in seconds. */
    public int seconds() {
        return buckets.length;
    }

    /**
     * Adds a value to the second of {@code now}. What is older than the window is forgotten, and so is what is negative,
     * over 1e15 or no number: no meter measures it.
     */
    public void record(long now, double value) {
        if (!(value >= 0 && value <= LARGEST)) {
            return;
        }
        long second = Math.floorDiv(now, SECOND);
        if (!written) {
            written = true;
            first = second;
            last = second;
        } else if (second > last) {
            if (second - last >= buckets.length) {
                Arrays.fill(buckets, 0);
                first = second;
            } else {
                for (long s = last + 1; s <= second; s++) {
                    buckets[index(s)] = 0;
                }
            }
            last = second;
        } else if (second + buckets.length <= last) {
            return;
        } else {
            first = Math.min(first, second);
        }
        buckets[index(second)] += value;
    }

    /** Whether nothing has been recorded for longer than the window, or ever. */
    public boolean isEmpty(long now) {
        return !written || Math.floorDiv(now, SECOND) - last > buckets.length;
    }

    /** The average at {@code now}; 0 when nothing was recorded for a whole window. */
    public double average(long now) {
        if (!written) {
            return 0;
        }
        long silent = Math.max(0, Math.floorDiv(now, SECOND) - last);
        if (silent >= buckets.length) {
            return 0;
        }
        return aggregation == Aggregation.LINEAR ? linear((int) silent) : weighted((int) silent);
    }

    private double linear(int silent) {
        int valid = (int) Math.min(last - first + 1, buckets.length - silent);
        double sum = 0;
        for (int i = 0; i < buckets.length - silent; i++) {
            sum += buckets[index(last - i)];
        }
        double average = sum / valid;
        // Six decimals: more would be noise of the addition.
        return average < 1e9 ? Math.round(average * 1e6) / 1e6 : average;
    }

    private double weighted(int silent) {
        double weight = coefficient * Math.pow(1 - coefficient, silent);
        double sum = 0;
        for (int i = 0; i < buckets.length - silent; i++) {
            sum += buckets[index(last - i)] * weight;
            weight *= 1 - coefficient;
        }
        return sum;
    }

    /** Makes the window longer or shorter; the seconds that both lengths cover stay. */
    public void resize(long now, int seconds) {
        int length = Math.max(1, seconds);
        if (length == buckets.length) {
            return;
        }
        double[] resized = new double[length];
        if (isEmpty(now)) {
            written = false;
        } else {
            for (int i = 0; i < Math.min(length, buckets.length); i++) {
                resized[Math.floorMod(last - i, length)] = buckets[index(last - i)];
            }
            first = Math.max(first, last - (buckets.length - 1));
        }
        buckets = resized;
        coefficient = coefficient(length);
    }

    /** The sum of all buckets at {@code now}. */
    double sum(long now) {
        long silent = written ? Math.max(0, Math.floorDiv(now, SECOND) - last) : buckets.length;
        double sum = 0;
        for (int i = 0; i < buckets.length - silent; i++) {
            sum += buckets[index(last - i)];
        }
        return sum;
    }

    private int index(long second) {
        return Math.floorMod(second, buckets.length);
    }
}
