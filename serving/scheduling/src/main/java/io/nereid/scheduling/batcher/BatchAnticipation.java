// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import io.nereid.base.ServingException;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.LinearRunTime;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;

/**
 * Decides whether a batch that could grow should wait, from what it has observed of one queue. It knows nothing of
 * jobs, instances and threads: every method takes the time and numbers, and the same calls give the same decisions.
 *
 * <p>Most clients send their next request when they have the response to the last one. A number of such clients is a
 * <em>population</em>: so many requests are at most outstanding (queued or running) at a time. When all of them are,
 * no other request can come, and waiting is in vain. When a run has just ended, its clients are about to send again,
 * and a batch that is closed at the first of their requests costs the others another run.
 *
 * <p><b>With a queue delay</b> ({@link #complete}) a batch closes before the end of the delay when it has its share:
 * the outstanding requests that do not run now, divided by the free instances. Without the division all
 * clients would meet in one batch, and the other instances would have nothing to do.
 *
 * <p><b>Without a queue delay</b> ({@link #waitsUntil}) a batch waits for its share, if that takes less than half of the
 * time that a run takes apart from its rows: that time is what a batch less saves. It waits only if that is a
 * noticeable part of the run, if those that are expected have come in at least {@link #LEAST_SUCCESS} of the recent
 * cases, and never if a run's fixed time is below {@link #LEAST_FIXED_NANOS}.
 *
 * <p><b>What is observed.</b> The population is the greatest number of outstanding requests between two closes, over the
 * last {@link #PERIODS} of them. A number counts only if it lasted: a client may send its next request before the run of its
 * last one has ended for this class. For waiting without a delay, the number that is reached in three of four
 * periods takes its place: a client that comes rarely must not be waited for. The time in which a population is complete again is
 * measured from the last end of a run, whether a batch waited or not, so a decision not to wait is revised when the
 * clients change.
 *
 * <p>Times are in nanoseconds of the batcher's clock. Guarded by the batcher's lock; no method allocates.
 */
final class BatchAnticipation {
    /** Closed batches over which the population is determined; before so many there is no anticipation. */
    static final int PERIODS = 16;

    /** Below this fixed time of a run a wait would cost more than it saves: timers and wake-ups take about as long. */
    static final long LEAST_FIXED_NANOS = 100_000;

    /** No wait is planned to be shorter, for the same reason; it usually ends earlier, with the last request. */
    private static final long LEAST_WAIT_NANOS = 20_000;

    /** The share of complete populations below which a batch does not wait without a delay. */
    static final double LEAST_SUCCESS = 0.85;

    /** The longest wait, as a share of a run's fixed time. */
    private static final double LONGEST_WAIT = 0.5;

    /** The least gain: what a run less saves beyond the wait, as a share of the time of the larger run. */
    static final double LEAST_GAIN = 0.08;

    /** The least gain for a queue whose last batch waited, so that it does not change its mind with every run. */
    private static final double LAST_GAIN = 0.06;

    /** While all runs had the same size, one batch of so many waits, to see what a larger one takes. */
    private static final int PROBES = 16;

    /** The longest wait of such a batch, as a share of a run. */
    private static final double LONGEST_PROBE = 1.0 / 8;

    /** The least deviation of the time until a population is complete, as a share of its mean. */
    private static final double LEAST_DEVIATION = 1.0 / 8;

    private static final double WEIGHT = 1.0 / 16;

    private final LinearRunTime runTimes = new LinearRunTime();

    /** Jobs of runs in progress. */
    private int running;

    // ---- the number of outstanding requests ----

    private int level;
    private long levelSince;
    /** The smallest number since {@link #blockSince}; for numbers that change all the time. */
    private int blockLevel;

    private long blockSince;
    /** The greatest number that lasted since the last close; 0 for none. */
    private int peak;

    private final int[] peaks = new int[PERIODS];
    private int next;
    private int periods;
    private int batches;
    private int population;
    private int usual;

    // ---- the time in which a population is complete again ----

    /** When the last run ended, or the first request after that arrived at an empty queue. */
    private long began;

    private boolean begun;
    private boolean complete = true;
    private double success;
    private double meanNanos;
    private double deviationNanos;
    /** Whether the last batch that could wait did. */
    private boolean waiting;

    /**
     * Returns whether the configuration of a model allows anticipation.
     *
     * @throws ServingException INVALID_ARGUMENT when the parameter has another value than {@code on} or {@code off}
     */
    static boolean allowed(ModelConfig config) {
        String value = config.parameters()
                .getOrDefault(DynamicBatching.ANTICIPATION, "on")
                .strip();
        if (!value.equals("on") && !value.equals("off")) {
            throw ServingException.invalidArgument(
                    "parameter " + DynamicBatching.ANTICIPATION + " of model '" + config.name() + "': '" + value
                            + "' (expected: on or off)",
                    "write on or off; without the parameter it is on");
        }
        return value.equals("on");
    }

    /**
     * Returns whether batches of a model may close earlier or later because of what is expected to arrive. Not with a rate limiter,
     * which decides when an instance is free; nor with a strategy, which decides what a batch is; nor if a request may
     * have its responses at any time of a run.
     */
    static boolean applies(ModelConfig config, SchedulerOptions options) {
        return allowed(config)
                && config.batching() != null
                && config.batched()
                && !config.decoupled()
                && options.limiter() == null
                && options.strategy() == null;
    }

    // ---- observations ----

    /** Records that a job was queued; {@code queued} counts it. */
    void arrived(long now, int queued) {
        level(now, queued + running);
        if (!begun) {
            begun = true;
            began = now;
        }
        if (!complete && level >= usual) {
            // The clock was read before the lock was taken, so it may be a little behind.
            completed(Math.max(0, now - began));
        }
    }

    /**
     * Records that a batch was closed.
     *
     * @param jobs those that have left the queue
     * @param queued those that are left in it
     */
    void closed(long now, int jobs, int queued) {
        running += jobs;
        batches++;
        level(now, queued + running);
        if (peak == 0) {
            // Nothing lasted since the last close, which was a moment ago.
            return;
        }
        peaks[next] = peak;
        next = (next + 1) % PERIODS;
        periods = Math.min(periods + 1, PERIODS);
        peak = 0;
        evaluate();
    }

    /**
     * Records that a run has ended.
     *
     * @param jobs as passed to {@link #closed}
     * @param rows rows of the batch; 0 if it did not run, since all clients had cancelled
     * @param nanos duration of the run
     */
    void ended(long now, int jobs, long rows, long nanos, int queued) {
        if (rows > 0) {
            runTimes.ran(rows, nanos);
        }
        if (!complete) {
            success -= WEIGHT * success;
        }
        // Before the jobs are subtracted, so that the number before this end counts.
        level(now, queued + running);
        running -= jobs;
        level(now, queued + running);
        began = now;
        begun = queued > 0;
        complete = level >= usual;
    }

    private void completed(long nanos) {
        complete = true;
        success += WEIGHT * (1 - success);
        double more = nanos - meanNanos;
        meanNanos += WEIGHT * more;
        deviationNanos += WEIGHT * (Math.abs(more) - deviationNanos);
    }

    /** Records the number of outstanding requests from now on. */
    private void level(long now, int outstanding) {
        double lasting = runTimes.mean() / 4;
        if (level > peak && now - levelSince >= lasting) {
            peak = level;
        }
        if (now - blockSince >= lasting) {
            peak = Math.max(peak, blockLevel);
            blockSince = now;
            blockLevel = outstanding;
        }
        blockLevel = Math.min(blockLevel, outstanding);
        if (outstanding != level) {
            level = outstanding;
            levelSince = now;
        }
    }

    /** Determines the greatest of the peaks, and the one that three of four reach. */
    private void evaluate() {
        int most = 0;
        for (int p : peaks) {
            most = Math.max(most, p);
        }
        population = most;
        int reached = most;
        int below = 0;
        // The few smallest are removed in turn.
        while (true) {
            int least = Integer.MAX_VALUE;
            for (int p : peaks) {
                least = p > below ? Math.min(least, p) : least;
            }
            int count = 0;
            for (int p : peaks) {
                count += p <= least ? 1 : 0;
            }
            reached = least;
            if (count > PERIODS / 4) {
                break;
            }
            below = least;
        }
        usual = reached;
    }

    // ---- decisions ----

    /**
     * Returns whether a batch that may wait for a queue delay has all requests that it should wait for.
     *
     * @param queued jobs in the queue, all of which would be in the batch
     * @param free instances without a run, at least 1
     */
    boolean complete(int queued, int free) {
        return periods >= PERIODS && (long) queued * free >= population - running;
    }

    /**
     * Returns until when a batch should wait although no delay is configured; {@code now} or earlier for not at all.
     *
     * @param queued jobs in the queue, all of which would be in the batch
     * @param free instances without a run, at least 1
     */
    long waitsUntil(long now, int queued, int free) {
        if (periods < PERIODS || success < LEAST_SUCCESS || (long) queued * free >= usual - running) {
            return now;
        }
        double wait = Math.max(LEAST_WAIT_NANOS, meanNanos + 3 * Math.max(deviationNanos, LEAST_DEVIATION * meanNanos));
        waiting = runTimes.known()
                ? worthwhile(wait, (double) (usual - running) / free)
                : batches % PROBES == 0 && runTimes.measured() && wait <= LONGEST_PROBE * runTimes.mean();
        return waiting ? began + (long) wait : now;
    }

    /** Returns the mean time of a run; 0 before the first one. */
    double meanRunNanos() {
        return runTimes.mean();
    }

    private boolean worthwhile(double wait, double share) {
        double fixed = runTimes.fixed();
        double gain = waiting ? LAST_GAIN : LEAST_GAIN;
        return fixed >= LEAST_FIXED_NANOS && wait <= LONGEST_WAIT * fixed && fixed - wait >= gain * runTimes.of(share);
    }
}
