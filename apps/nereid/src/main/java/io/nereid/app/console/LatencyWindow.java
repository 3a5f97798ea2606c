// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.console;

import io.nereid.engine.ModelActivity;
import java.util.ArrayDeque;

/**
 * The quantiles of the latencies of the last seconds, from the counts of a histogram that only grow. Confined to one
 * thread.
 */
final class LatencyWindow {
    private static final long[] BOUNDS = ModelActivity.latencyBounds();

    private final ArrayDeque<long[]> before = new ArrayDeque<>();
    private final int length;
    private long[] change = new long[BOUNDS.length + 1];

    /** @param length how many readings the window spans */
    LatencyWindow(int length) {
        this.length = length;
    }

    /** Takes a reading: the counts since the start, which the window keeps. */
    void add(long[] counts) {
        long[] oldest = before.isEmpty() ? counts : before.getFirst();
        long[] next = new long[counts.length];
        for (int i = 0; i < counts.length; i++) {
            next[i] = Math.max(0, counts[i] - oldest[i]);
        }
        change = next;
        before.addLast(counts);
        if (before.size() > length) {
            before.removeFirst();
        }
    }

    /**
     * A quantile in microseconds, interpolated within its bucket; -1 when the window has no request.
     *
     * @param quantile 0 to 1
     */
    long micros(double quantile) {
        long all = 0;
        for (long n : change) {
            all += n;
        }
        if (all == 0) {
            return -1;
        }
        double rank = quantile * all;
        long below = 0;
        for (int i = 0; i < change.length; i++) {
            if (below + change[i] >= rank && change[i] > 0) {
                long low = i == 0 ? 0 : BOUNDS[i - 1];
                // what is above all bounds has no upper one: the last bound is the most that is known
                long high = i < BOUNDS.length ? BOUNDS[i] : BOUNDS[BOUNDS.length - 1];
                return Math.round((low + (high - low) * (rank - below) / change[i]) / 1_000.0);
            }
            below += change[i];
        }
        return BOUNDS[BOUNDS.length - 1] / 1_000;
    }
}
