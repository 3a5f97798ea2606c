// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.objective;

import io.nereid.scheduling.admission.AdmissionPolicy;
import io.nereid.scheduling.execution.LinearRunTime;
import io.nereid.spi.config.parameters.LatencyObjective;
import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;

/**
 * Keeps the latency objective of a model with as few runs as possible. From what it observes of one queue it sets how long a batch waits
 * for further requests, the largest batch, and the number of instances that get runs; and it estimates for
 * {@link ObjectiveAdmission} how long a request would take. It knows nothing of jobs and threads: every method takes the time and
 * numbers, and the same calls give the same decisions.
 *
 * <p>The latency is the time from the arrival in the queue to the end of the run.
 *
 * <p><b>Windows.</b> Decisions are made at the end of a window of {@link #WINDOW} objectives, a quarter of a second to ten seconds,
 * that has seen {@link #LEAST_ANSWERED} requests. The objective has <em>slack</em> when the percentile of the window is below
 * {@link #LOW} of it and nothing was refused; it is <em>endangered</em> above {@link #HIGH}, or when requests were refused. In between
 * nothing changes, so that the values do not oscillate.
 *
 * <ul>
 *   <li><b>Largest batch</b>: the one with the highest rate of requests that can be answered in time. A request that arrives when a run
 *       has just begun waits for that run and takes part in the next, so usually the largest with two runs in the planned time.
 *   <li><b>Delay</b>: grows by a 16th of the objective while there is slack, if others are likely to arrive in that time and a run
 *       has a part that does not depend on its rows, which is what a run less saves. It is halved when the objective is endangered.
 *   <li><b>Instances</b>: one more when the objective is endangered or a request would be refused, unless runs are known to slow
 *       each other down so far that no more is served. Fewer after {@link #CALM} windows with slack in which the others would have
 *       been enough, and when that serves more, which is tried when requests are refused in spite of all instances. When
 *       fewer were wrong, the next attempt comes after twice as many windows.
 *   <li><b>Planned share</b>: the share of the objective that the expected time of a request may take. Smaller after a
 *       window that has missed the objective; larger while requests are refused although there is time left.
 * </ul>
 *
 * <p>Times are in nanoseconds of the queue's clock. Guarded by the queue's lock.
 */
public final class LatencyController {
    /** The length of a window in objectives. */
    static final int WINDOW = 20;

    static final int LEAST_ANSWERED = 50;

    /** The percentile of a window, as a share of the objective, below which it has slack, and above which it is endangered. */
    static final double LOW = 0.7;

    static final double HIGH = 0.9;

    /** Windows with slack before there are fewer instances. */
    static final int CALM = 4;

    private static final long SHORTEST_WINDOW = TimeUnit.MILLISECONDS.toNanos(250);
    private static final long LONGEST_WINDOW = TimeUnit.SECONDS.toNanos(10);
    /** A window ends after so many times its length although it has seen few requests. */
    private static final int PATIENCE = 20;

    /** Runs before any request is refused. */
    private static final int LEAST_RUNS = 4;
    /** The most instances whose run times are learnt separately. */
    private static final int MOST_CONCURRENT = 64;

    private static final double FIRST_SHARE = 0.9;
    private static final double LEAST_SHARE = 0.4;
    private static final double MOST_SHARE = 0.95;

    /** The step of the delay, and the longest delay, in objectives. */
    private static final double DELAY_STEP = 1.0 / 16;

    private static final double LONGEST_DELAY = 0.5;
    /** The least fixed time of a run for which a batch waits: timers and wake-ups take about as long. */
    private static final double LEAST_FIXED_NANOS = 100_000;
    /** The least fixed share of a run for which a batch waits. */
    private static final double LEAST_FIXED = 0.05;
    /** The requests that must be expected within the longest delay for a batch to wait, and to go on waiting. */
    private static final double EXPECTED = 0.5;

    private static final double STILL_EXPECTED = 0.25;

    /** The share of the instances that may be busy for the rest to be enough. */
    private static final double BUSY = 0.6;
    /** The share of refused requests, and of busy instances, from which what is served is all that can be. */
    private static final double SATURATED = 0.05;

    private static final double SATURATED_BUSY = 0.9;

    /** What another instance must gain in rate. */
    private static final double GAIN = 1.03;

    /** What is assumed before runs beside each other were seen: that two make each other half as long again. */
    private static final double FIRST_CONTENTION = 0.5;

    private static final int LONGEST_CALM = 32 * CALM;
    private static final long FRESH_NANOS = TimeUnit.MINUTES.toNanos(1);
    private static final long QUIET_NANOS = TimeUnit.SECONDS.toNanos(10);
    private static final double WEIGHT = 1.0 / 16;

    private final LatencyObjective objective;
    private final long limit;
    private final long window;
    private final double mostShare;
    private int maxRows;
    private final boolean mayDelay;
    private int configured;

    // ---- what is set ----

    private long delay;
    private int rows;
    private int instances;
    private double share;
    private long changes;

    // ---- run times ----

    private final LinearRunTime all = new LinearRunTime();
    /** Run times by the number of runs at once, from 1; created when they are first seen. */
    private @Nullable LinearRunTime[] concurrent;
    /** Requests that were served per nanosecond with so many instances while many others were refused; 0 for not known. */
    private double[] served;
    /** When that was seen. */
    private long[] servedAt;

    /** The share by which each run beside a run makes it longer. */
    private double contention = FIRST_CONTENTION;

    private int contentionRuns;
    private long runs;
    private boolean sloped;
    private int running;
    /** The sum of the expected ends of the runs in progress, after {@link #origin}. */
    private long expectedEnds;

    private long origin;
    /** The part of a run's time that does not depend on its rows, smoothed over windows; negative while it is not known. */
    private double fixed = -1;

    private double rowsPerRequest = 1;
    private double rowsPerRun = 1;

    // ---- the window ----

    private final LatencyHistogram latencies;
    private boolean begun;
    private long began;
    private long taken;
    private long refusedNow;
    private long busyNanos;
    private long refused;
    private double latency;
    /** The instances during the window; 0 if they have changed. */
    private int windowInstances;

    // ---- hysteresis ----

    private int calm;
    private int calmNeeded = CALM;
    /** Windows since the number of instances was lowered. */
    private int sinceLowered = Integer.MAX_VALUE;

    /** Windows in a row in which requests were refused, and how many of them there must be before fewer instances are tried. */
    private int strained;

    private int strainNeeded = CALM;
    /** The number of runs when the number of instances was raised. */
    private long grownAt = -LinearRunTime.FIRST_RUNS;

    /** Whether fewer instances are being tried, to see whether they serve more. */
    private boolean exploring;

    // ---- the log ----

    private String reason = "";
    private long loggedDelay;
    private int loggedRows;
    private int loggedInstances;
    private long loggedAt;
    private boolean everLogged;

    /**
     * Creates the controller of one queue, with all instances, the largest batch and no delay.
     *
     * @param maxRows the most rows of a batch; 1 if requests run alone
     * @param instances the configured instances
     * @param mayDelay whether batches may wait; false if the delay is configured
     */
    public LatencyController(LatencyObjective objective, int maxRows, int instances, boolean mayDelay) {
        this.objective = objective;
        this.limit = objective.nanos();
        this.window = Math.max(SHORTEST_WINDOW, Math.min(LONGEST_WINDOW, WINDOW * Math.min(limit, LONGEST_WINDOW)));
        // A median may be kept although single requests take longer.
        this.mostShare = Math.max(MOST_SHARE, MOST_SHARE / objective.quantile());
        this.share = FIRST_SHARE;
        this.maxRows = maxRows;
        this.mayDelay = mayDelay && maxRows > 1;
        this.configured = instances;
        this.rows = maxRows;
        this.instances = instances;
        this.loggedRows = maxRows;
        this.loggedInstances = instances;
        this.concurrent = new LinearRunTime[Math.min(MOST_CONCURRENT, instances) + 1];
        this.served = new double[concurrent.length];
        this.servedAt = new long[concurrent.length];
        this.latencies = new LatencyHistogram(limit);
    }

    /** Applies another number of configured instances. */
    public void configured(int count) {
        instances = instances == configured ? count : Math.min(instances, count);
        loggedInstances = instances;
        configured = count;
        int length = Math.min(MOST_CONCURRENT, count) + 1;
        concurrent = Arrays.copyOf(concurrent, length);
        served = Arrays.copyOf(served, length);
        servedAt = Arrays.copyOf(servedAt, length);
        windowInstances = 0;
    }

    /** Applies another maximum of rows, at least 1. What was learnt of runs determines the largest batch below it. */
    public void largest(int mostRows) {
        if (mostRows != maxRows) {
            maxRows = mostRows;
            rows = Math.min(rows, mostRows);
            changes += fitRows() ? 1 : 0;
            loggedRows = rows;
        }
    }

    // ---- what is set ----

    public LatencyObjective objective() {
        return objective;
    }

    /** Returns the longest wait of a batch for further requests; 0 for none. */
    public long delayNanos() {
        return delay;
    }

    /** Returns the most rows of a batch of several requests. */
    public int maxRows() {
        return rows;
    }

    /** Returns the number of instances that may run. */
    public int instances() {
        return instances;
    }

    /** Returns whether it determines the queue delay. */
    public boolean mayDelay() {
        return mayDelay;
    }

    public ObjectiveStatus status() {
        return new ObjectiveStatus(objective, (long) latency, delay, rows, instances, share, refused, changes);
    }

    // ---- observations ----

    /** A request was refused. */
    void refused() {
        refused++;
        refusedNow++;
    }

    /**
     * A batch was closed, and its run begins.
     *
     * @param arrivals when the requests arrived that have left the queue for it
     * @param batchRows its rows
     */
    public Run began(long now, long[] arrivals, long batchRows) {
        if (!begun) {
            begun = true;
            began = now;
            origin = now;
        }
        running++;
        taken += arrivals.length;
        rowsPerRequest += WEIGHT * ((double) batchRows / Math.max(1, arrivals.length) - rowsPerRequest);
        rowsPerRun += WEIGHT * (batchRows - rowsPerRun);
        long end = now - origin + (long) runNanos(batchRows);
        expectedEnds += end;
        return new Run(this, now, end, arrivals, batchRows, running);
    }

    private boolean ended(Run run, long now, boolean ran) {
        int atOnce = Math.min(concurrent.length - 1, Math.max(1, (run.running + running) / 2));
        running--;
        expectedEnds -= run.expectedEnd;
        if (ran) {
            long nanos = now - run.began;
            runs++;
            busyNanos += nanos;
            all.ran(run.rows, nanos);
            contended((run.running + running + 1) / 2.0, run.rows, nanos);
            runsAtOnce(atOnce).ran(run.rows, nanos);
            for (long arrival : run.arrivals) {
                latencies.add(now - arrival);
            }
        }
        boolean learning = runs <= 2 * LinearRunTime.FIRST_RUNS || sloped != all.sloped();
        boolean changed = runs >= LEAST_RUNS && learning && fitRows();
        sloped = all.sloped();
        long time = now - began;
        if (time >= window && (latencies.total() >= LEAST_ANSWERED || time >= PATIENCE * window)) {
            changed |= evaluate(now, time);
            latencies.clear();
            windowInstances = instances;
            began = now;
            taken = 0;
            refusedNow = 0;
            busyNanos = 0;
        }
        if (changed) {
            changes++;
        }
        return changed;
    }

    private LinearRunTime runsAtOnce(int count) {
        LinearRunTime times = concurrent[count];
        if (times == null) {
            times = new LinearRunTime();
            concurrent[count] = times;
        }
        return times;
    }

    // ---- estimates ----

    /** Learns by how much each run beside a run makes it longer. */
    private void contended(double atOnce, long batchRows, long nanos) {
        LinearRunTime alone = concurrent[1];
        if (atOnce >= 1.5 && alone != null && alone.sloped()) {
            double more = Math.max(0, (nanos / alone.of(batchRows) - 1) / (atOnce - 1));
            contention += Math.max(WEIGHT, 1.0 / ++contentionRuns) * (more - contention);
        }
    }

    /** Returns the time of a run with all instances in use. */
    private double runNanos(double batchRows) {
        return runNanos(instances, batchRows);
    }

    /** Returns the time of a run with so many at once; the mean of all runs while that is not known. */
    private double runNanos(int count, double batchRows) {
        double time = timeOf(count, batchRows);
        return Double.isNaN(time) ? timeOf(all, batchRows) : time;
    }

    /**
     * Returns the time of a run with so many at once: as measured, or else that of a run alone with what others add. Not a
     * number while that is not known.
     */
    private double timeOf(int count, double batchRows) {
        LinearRunTime times = count < concurrent.length ? concurrent[count] : null;
        if (times != null && times.known()) {
            return timeOf(times, batchRows);
        }
        LinearRunTime alone = concurrent[1];
        return alone != null && alone.sloped() ? timeOf(alone, batchRows) * (1 + contention * (count - 1)) : Double.NaN;
    }

    /**
     * Returns the time of a run. While all runs had the same size and show no slope, the time is taken to be proportional to
     * the rows, but not to be longer for twice as many, so that another size is tried.
     */
    private double timeOf(LinearRunTime times, double batchRows) {
        if (times.sloped()) {
            return times.of(batchRows);
        }
        double ratio = batchRows / Math.max(1, rowsPerRun);
        return times.mean() * (ratio <= 1 ? ratio : Math.max(1, ratio / 2));
    }

    /** Returns whether a run of a single row is short enough to keep the objective. */
    boolean attainable() {
        return runs < LEAST_RUNS || runNanos(1) <= limit;
    }

    /** Returns the requests that can be served in a nanosecond; 0 while that is not known. */
    double requestsPerNano() {
        double time = runNanos(rows);
        return time <= 0 ? 0 : instances * Math.max(1, rows / rowsPerRequest) / time;
    }

    /**
     * Returns the expected time until the run of a request begins that arrives now; 0 if an instance is free for it.
     *
     * @param ahead requests that run before it
     */
    private double waitNanos(long now, int ahead) {
        long batchesAhead = (long) (ahead * rowsPerRequest / rows);
        long turn = batchesAhead - (instances - running);
        if (turn < 0) {
            return 0;
        }
        // All instances are in use before, some by batches whose runs have not begun. Their ends are taken to be evenly
        // distributed over twice the mean of what is left of them.
        double run = runNanos(rows);
        double left = Math.max(0, (double) expectedEnds - (double) running * (now - origin));
        double rest = (left + Math.max(0, instances - running) * run) / Math.max(instances, running);
        return Math.floorDiv(turn, (long) instances) * run + 2 * rest * (turn % instances + 1) / (instances + 1);
    }

    /** Returns whether a request that arrives now would be answered in time, if need be with more instances than before. */
    boolean admits(long now, int ahead, long deadline) {
        while (!inTime(now, ahead, deadline)) {
            if (exploring || !mayGrow(now)) {
                return false;
            }
            grow("a request would have been refused");
            changes++;
        }
        return true;
    }

    private boolean inTime(long now, int ahead, long deadline) {
        if (runs < LEAST_RUNS) {
            return true;
        }
        double wait = waitNanos(now, ahead);
        if (wait <= 0) {
            return true;
        }
        if (deadline != AdmissionPolicy.NEVER && wait > deadline - now) {
            return false;
        }
        double one = runNanos(1);
        // Without a run that is short enough, what can be served is served, but nothing waits for more than a run.
        double planned = one > limit ? 2.25 * one : share * limit;
        return wait + runNanos(rows) <= planned;
    }

    /** Returns how long an accepted request may wait: then its run would end too late. */
    long waitLimit() {
        if (runs < LEAST_RUNS) {
            return AdmissionPolicy.NEVER;
        }
        double one = runNanos(1);
        double latest = Math.max(1, share) * limit;
        return (long)
                (one > limit
                        ? 1.5 * one
                        : Math.max(latest - runNanos(rows), Math.min(LONGEST_DELAY * limit, latest - one)));
    }

    // ---- decisions ----

    private boolean evaluate(long now, long time) {
        latency = latencies.quantile(objective.quantile());
        double used = latency / limit;
        double refusedShare = (double) refusedNow / Math.max(1, refusedNow + taken);
        boolean endangered = used > HIGH || refusedShare > 0.005;
        boolean slack = used < LOW && refusedNow == 0;
        double busy = (double) busyNanos / time;
        sinceLowered = Math.min(sinceLowered, Integer.MAX_VALUE - 1) + 1;
        calm = slack ? calm + 1 : 0;
        // What is served is all that can be served only where more was offered all the time; a burst at a low load says
        // nothing.
        boolean saturated = refusedShare > SATURATED && busy > SATURATED_BUSY * windowInstances;
        if ((saturated || exploring) && windowInstances > 0 && windowInstances < served.length) {
            served[windowInstances] = taken / (double) time;
            servedAt[windowInstances] = now;
        }
        exploring &= windowInstances == 0;
        share(used);
        boolean changed = fitRows();
        changed |= mayDelay && fitDelay(slack, endangered, taken / (double) time, busy);
        changed |= fitInstances(now, slack, endangered, busy);
        if (changed) {
            reason = String.format(
                    Locale.ROOT,
                    "%s of %d requests was %.4g ms, %.1f %% were refused, %.1f runs at once",
                    objective.metric(),
                    latencies.total(),
                    latency / 1e6,
                    100 * refusedShare,
                    busy);
        }
        return changed;
    }

    private void share(double used) {
        if (used > 1) {
            share = Math.max(LEAST_SHARE, share * Math.max(0.9, 1 - (used - 1) / 2 - 0.02));
        } else if (refusedNow > 0 && used < 0.95) {
            share = Math.min(mostShare, share + 0.02);
        } else if (used < LOW && share < FIRST_SHARE) {
            share = Math.min(FIRST_SHARE, share + 0.01);
        }
    }

    /** Determines the largest batch; a small change is none, unless it reaches the maximum. */
    private boolean fitRows() {
        int next = bestRows(instances);
        int now = rows;
        if (Math.abs(next - now) * 10 >= now || next == maxRows) {
            rows = next;
        }
        return rows != now;
    }

    /** Returns the size of a batch with the highest rate of requests in time; the larger one of two that are about equal. */
    private int bestRows(int count) {
        double planned = share * limit;
        if (maxRows == 1 || runs < LEAST_RUNS) {
            return maxRows;
        }
        double one = runNanos(count, 1);
        if (one >= planned) {
            // Nothing is in time; a batch that takes hardly longer than a single row is as good.
            double row = runNanos(count, 2) - one;
            return row <= 0 ? maxRows : (int) Math.max(1, Math.min(maxRows, 0.25 * one / row));
        }
        int best = 1;
        double bestRate = 0;
        for (int size = 1; ; size = Math.min(maxRows, size + 1 + size / 16)) {
            double rate = rate(size, runNanos(count, size), planned);
            if (rate >= 0.999 * bestRate) {
                best = size;
                bestRate = Math.max(bestRate, rate);
            }
            if (size == maxRows) {
                return best;
            }
        }
    }

    /** Returns the rows per nanosecond of an instance of requests that are in time, if they arrive evenly during a run. */
    private static double rate(int size, double time, double planned) {
        return size / time * Math.max(0, Math.min(1, (planned - time) / time));
    }

    private boolean fitDelay(boolean slack, boolean endangered, double requestsPerNano, double busy) {
        long before = delay;
        double longest = Math.min(LONGEST_DELAY * limit, share * limit - runNanos(rows));
        double step = limit * DELAY_STEP;
        double expected = requestsPerNano * Math.max(0, longest);
        if (all.measured()) {
            // As long as runs show no slope, it is all of the run, and a delay is the way to see more.
            fixed = fixed < 0 ? all.fixed() : fixed + (all.fixed() - fixed) / 8;
        }
        double least = Math.max(LEAST_FIXED_NANOS, LEAST_FIXED * all.of(1));
        boolean saves = fixed >= (delay > 0 ? least / 2 : least);
        if (endangered) {
            delay = delay < step ? 0 : delay / 2;
        } else if (!saves || expected < STILL_EXPECTED) {
            delay = 0;
        } else if (delay > longest + step) {
            delay = (long) longest;
        } else if (slack
                && calm >= 2
                && delay + step / 2 < longest
                && expected >= EXPECTED
                && busy < BUSY * instances
                && rowsPerRun < 0.9 * rows) {
            delay = (long) Math.min(longest, delay + step);
        }
        return delay != before;
    }

    private boolean fitInstances(long now, boolean slack, boolean endangered, double busy) {
        int before = instances;
        strained = endangered && refusedNow > 0 ? strained + 1 : 0;
        if (endangered && !exploring) {
            if (delay == 0 && mayGrow(now)) {
                grow(reason);
            } else if (instances > 1) {
                double gain = gain(now, instances);
                // Whether fewer at once serve more can only be seen by trying; if they did, still fewer are tried.
                boolean tries = !isFresh(now, instances - 1)
                        && (strained >= strainNeeded || gain(now, instances + 1) <= 1 / GAIN);
                exploring = tries;
                if (tries || gain < 1) {
                    instances--;
                    sinceLowered = 0;
                    strained = 0;
                }
            }
        } else if (slack && calm >= calmNeeded && instances > 1) {
            int enough = (int) Math.ceil(busy / BUSY);
            int next = Math.max(Math.max(1, enough), instances - Math.max(1, instances / 4));
            if (next < instances) {
                instances = next;
                sinceLowered = 0;
                calm = 0;
            }
        }
        return instances != before;
    }

    /** Uses one instance more. */
    private void grow(String why) {
        instances++;
        windowInstances = 0;
        grownAt = runs;
        reason = why;
        if (sinceLowered <= CALM) {
            calmNeeded = Math.min(LONGEST_CALM, 2 * calmNeeded);
            strainNeeded = Math.min(LONGEST_CALM, 2 * strainNeeded);
            sinceLowered = Integer.MAX_VALUE;
        }
    }

    /** Returns whether an estimate that another instance would not serve more has lasted for so long that it is time to try it. */
    private boolean mayTry(long now) {
        return strained >= strainNeeded && !isFresh(now, instances + 1);
    }

    /** Returns whether there is another instance, and it is not known that it would not serve more. */
    private boolean mayGrow(long now) {
        return instances < configured
                && runs - grownAt >= LinearRunTime.FIRST_RUNS
                && (mayTry(now) || !(gain(now, instances + 1) < GAIN))
                && !(gain(now, instances) < GAIN);
    }

    /**
     * Returns the rate with so many instances in relation to that with one less: as it was seen in the last minute while
     * requests were refused, or else by the times of runs at once. Not a number while that is not known.
     */
    private double gain(long now, int count) {
        if (count < 2 || count > configured) {
            return Double.NaN;
        }
        if (isFresh(now, count) && isFresh(now, count - 1)) {
            return served[count] / served[count - 1];
        }
        return rateOf(count) / rateOf(count - 1);
    }

    private boolean isFresh(long now, int count) {
        return count < served.length && served[count] > 0 && now - servedAt[count] < FRESH_NANOS;
    }

    /** Returns the rows per nanosecond with so many runs at once; not a number while it is not known. */
    private double rateOf(int count) {
        int size = bestRows(count);
        return count * rate(size, timeOf(count, size), share * limit);
    }

    // ---- the log ----

    /**
     * Returns a line for the log if values have changed since the last one, and a line is due; to be logged without the lock.
     *
     * @param queue names the queue, such as {@code model 'm'}
     */
    public @Nullable String news(long now, String queue) {
        if ((delay == loggedDelay && rows == loggedRows && instances == loggedInstances)
                || (everLogged && now - loggedAt < QUIET_NANOS)) {
            return null;
        }
        StringBuilder line =
                new StringBuilder(queue).append(" keeps ").append(objective).append(':');
        if (delay != loggedDelay) {
            line.append(String.format(Locale.ROOT, " queue delay %.4g ms -> %.4g ms,", loggedDelay / 1e6, delay / 1e6));
        }
        if (rows != loggedRows) {
            line.append(" largest batch ")
                    .append(loggedRows)
                    .append(" -> ")
                    .append(rows)
                    .append(',');
        }
        if (instances != loggedInstances) {
            line.append(" instances ")
                    .append(loggedInstances)
                    .append(" -> ")
                    .append(instances)
                    .append(',');
        }
        line.append(" since ")
                .append(
                        reason.isEmpty()
                                ? String.format(Locale.ROOT, "a run of one row takes %.4g ms", runNanos(1) / 1e6)
                                : reason);
        loggedDelay = delay;
        loggedRows = rows;
        loggedInstances = instances;
        loggedAt = now;
        everLogged = true;
        return line.toString();
    }

    /** A run in progress. Immutable, but for the array, which belongs to it. */
    public static final class Run {
        private final LatencyController controller;
        private final long began;
        private final long expectedEnd;
        private final long[] arrivals;
        private final long rows;
        private final int running;

        private Run(
                LatencyController controller, long began, long expectedEnd, long[] arrivals, long rows, int running) {
            this.controller = controller;
            this.began = began;
            this.expectedEnd = expectedEnd;
            this.arrivals = arrivals;
            this.rows = rows;
            this.running = running;
        }

        /**
         * The run has ended.
         *
         * @param ran false if it did not run, since all clients had cancelled
         * @return whether {@link #delayNanos}, {@link #maxRows} or {@link #instances} have changed
         */
        public boolean ended(long now, boolean ran) {
            return controller.ended(this, now, ran);
        }
    }
}
