// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

/**
 * The time of a model's runs as a line over the rows of a batch, {@code fixed + row * rows}: a least squares fit in
 * which old runs lose weight. While all runs have about the same size, the slope cannot be seen and keeps its last value.
 * All times are in nanoseconds. Guarded by the lock of the queue that owns it.
 */
public final class LinearRunTime {
    /** Runs before the line counts as known. */
    public static final int FIRST_RUNS = 32;

    /** The weight of a run that has just ended. */
    private static final double WEIGHT = 1.0 / 32;

    /** A run that took longer than so many times what was expected (a pause of the machine) counts as that long. */
    private static final double LONGEST = 3;

    /** The least variance of the sizes, as a share of their squared mean, at which the slope is computed. */
    private static final double LEAST_VARIANCE = 0.02;

    private int runs;
    private double meanRows;
    private double meanNanos;
    private double varianceRows;
    private double covariance;
    private double row;
    private boolean sloped;

    /** Adds a run of a number of rows. */
    public void ran(long rows, long nanos) {
        double time = nanos;
        if (known()) {
            time = Math.min(time, LONGEST * of(rows));
        }
        // At first every run has the same weight.
        double weight = Math.max(WEIGHT, 1.0 / (runs + 1));
        double moreRows = rows - meanRows;
        double moreNanos = time - meanNanos;
        meanRows += weight * moreRows;
        meanNanos += weight * moreNanos;
        varianceRows = (1 - weight) * (varianceRows + weight * moreRows * moreRows);
        covariance = (1 - weight) * (covariance + weight * moreRows * moreNanos);
        if (varianceRows > LEAST_VARIANCE * meanRows * meanRows) {
            row = Math.max(0, covariance / varianceRows);
            sloped = true;
        }
        // Neither a row nor the rest of a run takes negative time; so a slope that was seen in slow runs does not last.
        row = Math.min(row, meanNanos / meanRows);
        runs = Math.min(runs + 1, FIRST_RUNS);
    }

    /** Returns whether enough runs were measured for {@link #mean}. */
    public boolean measured() {
        return runs >= FIRST_RUNS;
    }

    /** Returns whether runs of different sizes were measured, so that {@link #of} depends on the size. */
    public boolean sloped() {
        return sloped;
    }

    /** Returns whether enough runs were measured, and runs of different sizes among them. */
    public boolean known() {
        return measured() && sloped;
    }

    /** Returns the part of a run's time that does not depend on its rows. */
    public double fixed() {
        return Math.max(0, meanNanos - row * meanRows);
    }

    /** Returns the expected time of a run of a number of rows. */
    public double of(double rows) {
        return fixed() + row * rows;
    }

    /** Returns the mean time of the runs. */
    public double mean() {
        return meanNanos;
    }
}
