// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.admission;

import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/**
 * Keeps the time that requests take near a target while more requests arrive than can be served, and refuses nothing
 * otherwise, however long the queue is.
 *
 * <p><b>What is an overload.</b> A long queue is not: a thousand clients that each wait for their response before they
 * send the next request keep a slow model's queue at a thousand, and a burst of requests is served. An overload is a
 * queue that grows for longer than it takes to serve what has been waiting. The policy watches a queue from the moment
 * when a request has waited a sixth of the target. It samples the queue each time a quarter of what waited then has
 * left it; four samples are a round. With a fixed number of clients, one request arrives for each that is served once all
 * clients have sent their first one; the queue does not grow any more. It is overloaded when, at the end of a round or
 * later,
 *
 * <ul>
 *   <li>it has grown by a quarter, and by three standard deviations of random arrivals and departures, since it was last
 *       steady (a queue is steady when it has not grown in two rounds, or is shorter than then);
 *   <li>it still grows: in the last round and between the last two samples, by more than chance, and at no less than half
 *       of the pace since it was steady;
 *   <li>and what waits takes longer than the target.
 * </ul>
 *
 * <p>The first round begins with the queue that a fast load has built up, so it is longer the more is offered: the
 * policy waits as long for {@code n} clients to appear as a part of their first requests takes to be served. It assumes
 * neither a rate nor a time, and a slow first run only makes the round longer.
 *
 * <p><b>While it is overloaded</b>, a request is accepted if those before it leave it enough time: the target without
 * the time of a run, with a margin of a fifth. If a run takes much of the target or more, requests for one and a
 * quarter runs are accepted instead, so that the next batch is full. Accepted requests that wait longer in spite of
 * this (the runs have become slower) are refused when their time is over. A request whose deadline would pass while it
 * waits is refused at once.
 *
 * <p><b>The end.</b> When nothing had to be refused for two targets, or for the time of 20 requests if that is longer.
 */
public final class OverloadAdmission implements AdmissionPolicy {
    private static final double MARGIN = 0.8;
    private static final double RUNS_AHEAD = 1.25;
    /** Runs after which the time of an accepted request is over, if that is later than the target. */
    private static final double RUNS_AT_MOST = 1.5;

    /** Samples in a round. */
    private static final int ROUND = 4;
    /** Rounds without growth after which a queue is steady. */
    private static final int FLAT_ROUNDS = 2;

    private static final double NANOS = 1e9;
    private static final long MIN_RETRY = TimeUnit.SECONDS.toNanos(1);
    private static final long MAX_RETRY = TimeUnit.SECONDS.toNanos(60);

    private enum State {
        /** Requests hardly wait. */
        NORMAL,
        /** Requests wait, and rounds are measured. */
        WATCHING,
        OVERLOADED
    }

    private final long target;
    private final long standing;
    private State state = State.NORMAL;

    // ---- while watching ----

    /** The queue when it was last steady, and when that was. */
    private int steady;

    private long steadySince;
    /** Requests that have left the queue since, and those of them that were served. */
    private long left;

    private long served;
    /** The queue at the last samples, and how many requests had left it: rings. */
    private final int[] queues = new int[ROUND];

    private final long[] departures = new long[ROUND];
    private int samples;
    /** Samples in a row in which the queue had not grown in the last round. */
    private int flat;

    // ---- while overloaded ----

    /** Requests that are served in a second. */
    private double rate;
    /** Requests that arrive for each one that is served. */
    private double offeredRatio;

    private long lastRefusal;
    private long measureBegan;
    private int measuredTaken;
    private int measuredRuns;
    private int measuredArrivals;
    private boolean saturated;

    /** The mean duration of a run in nanoseconds; a moving average. */
    private double runNanos;

    /** @param target the longest time that a request should take, with its run */
    public OverloadAdmission(Duration target) {
        this.target = target.toNanos();
        this.standing = this.target / 6;
    }

    @Override
    public boolean admits(long now, int ahead, long deadline) {
        if (state != State.OVERLOADED) {
            return true;
        }
        measuredArrivals++;
        if (isOver(now)) {
            state = State.NORMAL;
            return true;
        }
        double wait = ahead / rate * NANOS;
        if (wait <= budget() && (deadline == NEVER || wait <= deadline - now)) {
            return true;
        }
        lastRefusal = now;
        return false;
    }

    @Override
    public long retryNanos() {
        // If the excess comes back evenly within this time, about as much arrives as is served.
        return Math.max(MIN_RETRY, Math.min(MAX_RETRY, (long) (budget() * offeredRatio)));
    }

    /** Returns the wait for which requests are accepted, in nanoseconds. */
    private double budget() {
        return Math.max(MARGIN * (target - runNanos), RUNS_AHEAD * runNanos);
    }

    private boolean isOver(long now) {
        return now - lastRefusal > Math.max(2 * target, (long) (20 * NANOS / rate));
    }

    @Override
    public boolean taken(long now, int count, long waited, int queue) {
        switch (state) {
            case NORMAL -> {
                if (waited >= standing && queue > 0) {
                    state = State.WATCHING;
                    isSteady(now, queue);
                }
                return false;
            }
            case WATCHING -> {
                served += count;
                left += count;
                return watch(now, queue);
            }
            case OVERLOADED -> {
                measure(now, count, queue);
                if (isOver(now)) {
                    state = State.NORMAL;
                }
                return false;
            }
        }
        return false;
    }

    @Override
    public void removed(int count) {
        left += count;
    }

    private void isSteady(long now, int queue) {
        steady = queue;
        steadySince = now;
        left = 0;
        served = 0;
        samples = 0;
        flat = 0;
        sample(queue);
    }

    private void sample(int queue) {
        queues[samples % ROUND] = queue;
        departures[samples % ROUND] = left;
        samples++;
    }

    /** Samples the queue each time a quarter of what waited has left it. Returns whether it is overloaded. */
    private boolean watch(long now, int queue) {
        int last = (samples - 1) % ROUND;
        if (queue > 0 && left - departures[last] < (steady + ROUND - 1) / ROUND) {
            return false;
        }
        double wait = served == 0 ? Double.MAX_VALUE : (double) queue * (now - steadySince) / served;
        int first = samples % ROUND;
        boolean round = samples >= ROUND;
        if (round
                && served > 0
                && wait >= target
                && grew(0.5, queue, last)
                && grew(1.5, queue, first)
                && 4 * ((long) queue - steady) >= steady
                && exceeds(3, (long) queue - steady, left)) {
            enter(now, served / ((now - steadySince) / NANOS), 1 + (double) (queue - steady) / left);
            return true;
        }
        if (wait < standing / 2.0) {
            state = State.NORMAL;
            return false;
        }
        if (round) {
            flat = exceeds(1, (long) queue - queues[first], left - departures[first]) ? 0 : flat + 1;
        }
        if (flat >= FLAT_ROUNDS * ROUND || queue < steady) {
            isSteady(now, queue);
        } else {
            sample(queue);
        }
        return false;
    }

    /**
     * Returns whether the queue has grown since an earlier sample, by more than chance and at no less than half of the
     * pace at which it has grown since it was steady.
     */
    private boolean grew(double deviations, int queue, int sample) {
        long growth = (long) queue - queues[sample];
        long gone = left - departures[sample];
        return exceeds(deviations, growth, gone) && 2.0 * growth * left >= ((double) queue - steady) * gone;
    }

    /**
     * Returns whether a growth is larger than so many standard deviations of the difference between arrivals and
     * departures, if both were random and equal.
     */
    private static boolean exceeds(double deviations, long growth, long departures) {
        return growth > 0 && (double) growth * growth > deviations * deviations * (2.0 * departures + growth);
    }

    private void enter(long now, double servedPerSecond, double offered) {
        state = State.OVERLOADED;
        rate = servedPerSecond;
        offeredRatio = offered;
        lastRefusal = now;
        startMeasure(now);
    }

    private void startMeasure(long now) {
        measureBegan = now;
        measuredTaken = 0;
        measuredRuns = 0;
        measuredArrivals = 0;
        saturated = true;
    }

    /** Measures the rates over a quarter of the target, or four runs if that takes longer. */
    private void measure(long now, int count, int queue) {
        measuredTaken += count;
        measuredRuns++;
        saturated &= queue > 0;
        long time = now - measureBegan;
        if (time < target / 4 || measuredRuns < 4) {
            return;
        }
        double measured = measuredTaken / (time / NANOS);
        // While nothing waits, fewer requests are served than could be.
        if (saturated || measured > rate) {
            rate += 0.7 * (measured - rate);
        }
        offeredRatio += 0.3 * (Math.max(1, measuredArrivals / (double) measuredTaken) - offeredRatio);
        startMeasure(now);
    }

    @Override
    public void ran(long nanos) {
        runNanos = runNanos == 0 ? nanos : runNanos + (nanos - runNanos) / 8;
    }

    @Override
    public int keep() {
        return (int) Math.min(Integer.MAX_VALUE, budget() * rate / NANOS + 1);
    }

    @Override
    public long waitLimit() {
        return state == State.OVERLOADED ? (long) Math.max(target - 2 * runNanos, RUNS_AT_MOST * runNanos) : NEVER;
    }

    @Override
    public boolean refuses() {
        return state == State.OVERLOADED;
    }

    @Override
    public String reason() {
        return String.format(
                Locale.ROOT,
                "%.3g requests a second are served, and %.1f times as many arrive; those that would take longer than"
                        + " %.3g s are refused",
                rate,
                offeredRatio,
                target / NANOS);
    }
}
