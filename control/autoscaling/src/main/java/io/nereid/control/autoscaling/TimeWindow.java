// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import java.util.Arrays;

/**
 * A sliding window that averages a metric in buckets of one second (Knative's timed float64 buckets). Confined to the
 * thread that owns it; times are nanoseconds of {@code Clock.nanos()}.
 *
 * <p>A window that has existed for less than its length averages over its lifetime. Seconds in the middle without a
 * value count as zero. Seconds at the end without a value yet do not count, until a whole window has passed without
 * one.
 */
public final class TimeWindow {
    private static final long SECOND = 1_000_000_000L;
    private static final double SMALLEST_COEFFICIENT = 0.2;
    private static final double WEIGHT = 0.9999;
    private static final double LARGEST = 1e15;

    /** How a window weights its seconds. */
    public enum Aggregation {
        /** All seconds have the same weight. */
        LINEAR,
        /**
         * Exponentially falling weights: c for the newest second, c(1-c), c(1-c)^2 ... for older ones; c is at least
         * 0.2.
         */
        WEIGHTED_EXPONENTIAL
    }

    private final Aggregation aggregation;
    private double[] buckets;
    private double coefficient;
    private boolean written;
    private long first;
    private long last;

    /**
     * Creates an empty window.
     *
     * @param seconds its length, at least 1
     * @param aggregation how it weights its seconds
     */
    public TimeWindow(int seconds, Aggregation aggregation) {
        this.aggregation = aggregation;
        this.buckets = new double[Math.max(1, seconds)];
        this.coefficient = coefficient(buckets.length);
    }

    /** The weight of the newest of {@code buckets} buckets: chosen so that all weights together are at least 0.9999. */
    static double coefficient(int buckets) {
        return Math.max(SMALLEST_COEFFICIENT, 1 - Math.pow(1 - WEIGHT, 1.0 / buckets));
    }

    /** The window's length in seconds. */
    public int seconds() {
        return buckets.length;
    }

    /**
     * Adds a value to the second of {@code now}. Ignores values for seconds before the window, and values that a meter
     * cannot measure: negative ones, those over 1e15 and NaN.
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
            // Time went on: clear the buckets of the seconds in between, all of them after a gap of a whole window.
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

    /** Whether no value was recorded for longer than the window, or ever. */
    public boolean isEmpty(long now) {
        return !written || Math.floorDiv(now, SECOND) - last > buckets.length;
    }

    /** The average at {@code now}; 0 when no value was recorded for a whole window. */
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
        // Rounds to six decimals: further digits are rounding errors of the sum.
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

    /** Changes the window's length; keeps the seconds that both lengths cover. */
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
