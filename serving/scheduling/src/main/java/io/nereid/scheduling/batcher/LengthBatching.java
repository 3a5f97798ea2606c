// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.execution.LinearRunTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Chooses the jobs of a batch whose rows are padded to the longest one, so that little of a run is padding.
 *
 * <p>A run of {@code rows} with the length {@code longest} takes {@code fixed + position * rows * longest}: the fit of
 * {@link LinearRunTime} over the measured runs, in positions instead of rows. All jobs that wait are divided into batches
 * so that their runs take the least time together. Sorted by length, each batch of the best division is a range (where
 * all jobs have as many rows), and one pass of dynamic programming finds it. The batch that has the job at the head of the queue is the one that runs, so
 * every job runs at the latest when all that were queued before it have run.
 *
 * <p>Only jobs of the head's priority level are considered, and at most {@link #WINDOW} of them. Guarded by the lock of
 * the batcher that owns it.
 */
final class LengthBatching {
    /** The most jobs that are considered at a time. */
    static final int WINDOW = 256;

    /** The fixed part of a run, in positions, before it has been measured. */
    private static final double FIRST_FIXED = 32;

    /** The least fixed part, as a share of the mean run: each batch costs something. */
    private static final double LEAST_FIXED = 0.02;

    /** The fixed part where a position takes no time that can be seen, so that the number of batches decides. */
    private static final double ALL_FIXED = 1e12;

    private static final Comparator<QueuedJob> BY_LENGTH = Comparator.comparingInt(e -> e.length);
    private static final Comparator<QueuedJob> BY_ARRIVAL = Comparator.comparingInt(e -> e.place);

    private final BatchRunner runner;
    private final LinearRunTime runTime = new LinearRunTime();
    private final @Nullable QueuedJob[] sorted = new @Nullable QueuedJob[WINDOW];
    /** The least time for the first jobs of {@link #sorted}, and where the last of their batches begins. */
    private final double[] least = new double[WINDOW + 1];

    private final int[] begins = new int[WINDOW + 1];

    private long rows;
    private long positions;
    private boolean leaves;

    LengthBatching(BatchRunner runner) {
        this.runner = runner;
    }

    /** Adds a measured run. */
    void ran(long runPositions, long nanos) {
        runTime.ran(runPositions, nanos);
    }

    /**
     * Returns the jobs of the next batch in the order of the queue, the job at the head first.
     *
     * @param fullRows the most rows of a batch; a job with more rows runs alone
     */
    List<QueuedJob> select(QueuedJob head, long fullRows) {
        int count = collect(head);
        QueuedJob[] jobs = Arrays.copyOf(sorted, count, QueuedJob[].class);
        Arrays.fill(sorted, 0, count, null);
        Arrays.sort(jobs, BY_LENGTH);
        divide(jobs, fullRows);
        int end = count;
        int from = begins[end];
        while (!contains(jobs, from, end, head)) {
            end = from;
            from = begins[end];
        }
        List<QueuedJob> chosen = new ArrayList<>(Arrays.asList(jobs).subList(from, end));
        chosen.sort(BY_ARRIVAL);
        rows = 0;
        for (QueuedJob e : chosen) {
            rows += e.rows;
        }
        positions = rows * jobs[end - 1].length;
        leaves = end - from < count;
        return chosen;
    }

    /** After {@link #select}: returns the rows of the batch. */
    long rows() {
        return rows;
    }

    /** After {@link #select}: returns the positions that the run computes, padding included. */
    long positions() {
        return positions;
    }

    /** After {@link #select}: returns whether jobs are left that could have shared the batch. */
    boolean leaves() {
        return leaves;
    }

    /** Fills {@link #sorted} with the jobs that may share a batch with the head, in the order of the queue. */
    private int collect(QueuedJob head) {
        int count = 0;
        for (QueuedJob e = head; e != null && count < WINDOW; e = e.next) {
            if (e.level != head.level || e.delayed != head.delayed) {
                break;
            }
            if (e == head || (e.split == null && runner.joinable(head.job, e.job))) {
                if (e.length < 0) {
                    e.length = runner.length(e.job);
                }
                e.place = count;
                sorted[count++] = e;
            }
        }
        return count;
    }

    /** Computes the division of sorted jobs whose runs take the least time together; with equal times the larger batches. */
    private void divide(QueuedJob[] jobs, long fullRows) {
        double fixed = fixed();
        least[0] = 0;
        for (int end = 1; end <= jobs.length; end++) {
            double longest = jobs[end - 1].length;
            double best = Double.POSITIVE_INFINITY;
            long batch = 0;
            for (int from = end - 1; from >= 0; from--) {
                batch += jobs[from].rows;
                if (batch > fullRows && from < end - 1) {
                    break;
                }
                double time = least[from] + fixed + longest * batch;
                if (time <= best) {
                    best = time;
                    begins[end] = from;
                }
            }
            least[end] = best;
        }
    }

    /** Returns the part of a run's time that does not depend on its size, in the time of a position. */
    private double fixed() {
        if (!runTime.known()) {
            return FIRST_FIXED;
        }
        double position = runTime.of(1) - runTime.fixed();
        double fixed = Math.max(runTime.fixed(), LEAST_FIXED * runTime.mean());
        return position > 0 ? Math.min(ALL_FIXED, fixed / position) : ALL_FIXED;
    }

    private static boolean contains(QueuedJob[] jobs, int from, int end, QueuedJob job) {
        for (int i = from; i < end; i++) {
            if (jobs[i] == job) {
                return true;
            }
        }
        return false;
    }
}
