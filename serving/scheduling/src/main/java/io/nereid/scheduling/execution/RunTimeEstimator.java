// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

/**
 * Estimates from measured run times whether a model is tiny, so that its jobs may run on the submitting thread: an
 * exponential moving average with weight 1/8 for each new value, and the time of long runs as a share of all. Guarded by the lock of the queue that
 * owns it.
 *
 * <p>A long run on the submitting thread delays all requests of that thread, so a model with such runs is not tiny, however short the others
 * are. But one long run shows little: on a machine whose processors are busy a thread that loses its processor for a
 * millisecond looks the same, some times a second. What counts is the time that long runs take for each run, over about a thousand of them.
 * When a single one ended the inlining, three of a hundred requests of one client went through another thread, and the 99 % time was theirs.
 */
public final class RunTimeEstimator {
    public static final int RUNS_BEFORE_JUDGEMENT = 32;
    static final long TINY_NANOS = 30_000;

    /** A run counts for the average as at most this long: beyond it, {@link #excess} has the rest. */
    private static final long MOST_NANOS = 2 * TINY_NANOS;

    private static final double LONG_WEIGHT = 1.0 / 1024;

    private int runs;
    private double average;
    /** The time of long runs, beyond what the average has of them, for each of about the last thousand runs. */
    private double excess;

    /** Adds the duration of one run. */
    public void ran(long nanos) {
        long counted = Math.min(nanos, MOST_NANOS);
        average = runs == 0 ? counted : average + (counted - average) / 8;
        excess += (nanos - counted - excess) * LONG_WEIGHT;
        runs = Math.min(runs + 1, RUNS_BEFORE_JUDGEMENT);
    }

    /** Returns whether enough runs were measured and their average is below {@link #TINY_NANOS}, long runs included. */
    public boolean tiny() {
        return runs >= RUNS_BEFORE_JUDGEMENT && average + excess < TINY_NANOS;
    }
}
