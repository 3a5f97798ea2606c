// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

/**
 * Estimates from measured run times whether a model is tiny, so that its jobs may run on the submitting thread: an
 * exponential moving average with weight 1/8 for each new value. Guarded by the lock of the queue that owns it.
 */
public final class RunTimeEstimator {
    public static final int RUNS_BEFORE_JUDGEMENT = 32;
    static final long TINY_NANOS = 30_000;
    static final long LONG_NANOS = 250_000;

    private int runs;
    private double average;

    /** Adds the duration of one run. */
    public void ran(long nanos) {
        if (nanos > LONG_NANOS) {
            // One long run on the submitting thread delays all requests of that thread: begin the measurement again.
            // One long run on the submitting thread delays all requests of that thread: begin the measurement again.
            runs = 0;
            return;
        }
        average = runs == 0 ? nanos : average + (nanos - average) / 8;
        runs = Math.min(runs + 1, RUNS_BEFORE_JUDGEMENT);
    }

    /** Returns whether enough runs were measured and their average is below {@link #TINY_NANOS}. */
    public boolean tiny() {
        return runs >= RUNS_BEFORE_JUDGEMENT && average < TINY_NANOS;
    }
}
