// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.objective;

import java.util.Arrays;

/**
 * Latencies of a window in steps of a 32nd of an objective, up to four times the objective. Guarded by the lock of the queue
 * that owns it; no method allocates.
 */
final class LatencyHistogram {
    private static final int STEPS = 32;
    private static final int TIMES = 4;

    private final double step;
    private final int[] counts = new int[STEPS * TIMES + 1];
    private int total;

    LatencyHistogram(long objectiveNanos) {
        this.step = (double) objectiveNanos / STEPS;
    }

    void add(long nanos) {
        counts[(int) Math.min(counts.length - 1, Math.max(0, nanos) / step)]++;
        total++;
    }

    int total() {
        return total;
    }

    /** Returns a quantile in nanoseconds, linear within its step; 0 without latencies. Above four objectives it is that time. */
    double quantile(double q) {
        double rank = q * total;
        double before = 0;
        for (int i = 0; i < counts.length && total > 0; i++) {
            if (before + counts[i] >= rank && counts[i] > 0) {
                return i == counts.length - 1 ? i * step : (i + (rank - before) / counts[i]) * step;
            }
            before += counts[i];
        }
        return 0;
    }

    void clear() {
        Arrays.fill(counts, 0);
        total = 0;
    }
}
