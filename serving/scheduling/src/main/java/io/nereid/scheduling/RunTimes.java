// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

/**
 * Whether a model is tiny, from the time its runs take: a moving average over an eighth of each new value. Guarded by the
 * queue's lock.
 */
final class RunTimes {
    static final int RUNS_BEFORE_JUDGEMENT = 32;
    static final long TINY_NANOS = 30_000;
    static final long LONG_NANOS = 250_000;

    private int runs;
    private double average;

    void ran(long nanos) {
        if (nanos > LONG_NANOS) {
            runs = 0;
            return;
        }
        average = runs == 0 ? nanos : average + (nanos - average) / 8;
        runs = Math.min(runs + 1, RUNS_BEFORE_JUDGEMENT);
    }

    boolean tiny() {
        return runs >= RUNS_BEFORE_JUDGEMENT && average < TINY_NANOS;
    }
}
