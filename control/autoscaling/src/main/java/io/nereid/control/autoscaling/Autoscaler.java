// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import io.nereid.base.ServingException;
import java.util.Locale;

/**
 * The autoscaler of one revision: metric windows, decider and scaler together. Confined to one thread at a time; times are
 * nanoseconds of {@code Clock.nanos()}.
 *
 * <p>Whoever owns it {@linkplain #record records} a {@link ConcurrencyMeter}'s report every second, {@linkplain #tick ticks}
 * every two, and {@linkplain #poke pokes} when a request comes while {@link #asleep}. The decision's number of replicas is
 * what to have from then on.
 */
public final class Autoscaler {
    /** How often {@link #tick} is due, in nanoseconds. */
    public static final long TICK_NANOS = 2_000_000_000L;
    /** How often {@link #record} is due, in nanoseconds. */
    public static final long RECORD_NANOS = 1_000_000_000L;

    /**
     * What to do, and what it rests on.
     *
     * @param wanted replicas to have, never negative; while nothing is known it is what there was
     * @param excessBurst what could come at once above the target burst capacity; negative when requests had better queue
     * @param mode how requests should reach the replicas
     * @param active whether the revision takes requests; false while it starts, too
     * @param activity the same in three states
     * @param reason why it is not active: {@code Queued}, {@code NoTraffic}, {@code TimedOut}; else empty
     * @param panicking whether it only scales up for now
     * @param stable the metric over the stable window, of all replicas together
     * @param panic the metric over the panic window
     * @param asked what the metric asks for before bounds and the way to zero; -1 while nothing is known
     */
    public record Decision(
            int wanted,
            int excessBurst,
            Scaler.Mode mode,
            boolean active,
            Scaler.Activity activity,
            String reason,
            boolean panicking,
            double stable,
            double panic,
            int asked) {
        /** The decision in one line for logs and events: {@code 3 replicas (active, panic; stable 12.00, panic 40.25, asked 3)}. */
        public String describe() {
            String state = activity.name().toLowerCase(Locale.ROOT)
                    + (reason.isEmpty() ? "" : ", " + reason)
                    + (panicking ? ", panic" : "");
            return String.format(
                    Locale.ROOT,
                    "%d %s (%s; stable %.2f, panic %.2f, asked %d)",
                    wanted,
                    wanted == 1 ? "replica" : "replicas",
                    state,
                    stable,
                    panic,
                    asked);
        }
    }

    private ScalingSettings settings;
    private final MetricWindow stable;
    private final MetricWindow panic;
    private Decider.State decider;
    private Scaler.State scaler;
    private boolean reachable = true;
    private int replicas;
    private int asked = Scaler.UNKNOWN;
    private int excessBurst;

    /** An autoscaler of a new revision: it begins with {@link Scaler#initial} replicas. */
    public Autoscaler(ScalingSettings settings, long now) {
        this(settings, now, 0, Scaler.initial(settings));
    }

    /**
     * An autoscaler of a revision that was there before. With replicas it goes on with them until enough is measured; with
     * none it sleeps on.
     *
     * @param ready replicas that answer
     * @param replicas how many there are or should be
     */
    public Autoscaler(ScalingSettings settings, long now, int ready, int replicas) {
        this.settings = settings;
        this.stable = new MetricWindow(settings.stableSeconds(), settings.aggregation());
        this.panic = new MetricWindow(settings.panicSeconds(), settings.aggregation());
        this.decider = Decider.State.start(now, ready);
        this.replicas = Math.max(0, replicas);
        Scaler.State start = Scaler.State.start(now);
        this.scaler = replicas > 0 || settings.initialScale() == 0
                ? start
                : new Scaler.State(Scaler.Activity.INACTIVE, "NoTraffic", now, start.mode(), now, true);
        this.excessBurst = Decider.excessBurst(settings, this.replicas, 0);
    }

    /** The settings. */
    public ScalingSettings settings() {
        return settings;
    }

    /** How many replicas there should be now. */
    public int wanted() {
        return replicas;
    }

    /** Whether the traffic last asked for no replica at all: the next request must {@link #poke}. */
    public boolean asleep() {
        return replicas == 0 || scaler.activity() == Scaler.Activity.INACTIVE;
    }

    /** Takes other settings and keeps what was measured. */
    public void update(ScalingSettings changed, long now) {
        if (changed.metric() != settings.metric() || changed.aggregation() != settings.aggregation()) {
            throw ServingException.invalidArgument(
                    "metric and aggregation of a running revision cannot change (expected " + settings.metric()
                            + " and " + settings.aggregation() + ")",
                    "make a new autoscaler");
        }
        settings = changed;
        stable.resize(now, changed.stableSeconds());
        panic.resize(now, changed.panicSeconds());
    }

    /** Says whether any route leads to the revision; without one it goes to zero whatever its bounds are. */
    public void reachable(boolean reachable) {
        this.reachable = reachable;
    }

    /** One second's measurements, of all replicas together, as {@link ConcurrencyMeter#report} gives them. */
    public void record(long now, double concurrency, double requestsPerSecond) {
        double value = settings.metric() == ScalingSettings.Metric.RPS ? requestsPerSecond : concurrency;
        stable.record(now, value);
        panic.record(now, value);
    }

    /** Decides anew. */
    public Decision tick(long now, int ready) {
        double s = stable.average(now);
        double p = panic.average(now);
        if (!stable.isEmpty(now)) {
            Decider.Result result = Decider.decide(settings, decider, new Decider.Input(now, ready, s, p, reachable));
            decider = result.state();
            asked = result.wanted();
            excessBurst = result.excessBurst();
        }
        Scaler.Result result =
                Scaler.apply(settings, scaler, new Scaler.Input(now, asked, excessBurst, ready, reachable, true));
        scaler = result.state();
        if (result.apply()) {
            replicas = result.replicas();
        } else if (reachable) {
            // What is left alone must keep bounds that have changed.
            replicas = Scaler.bounded(settings.min(), settings.max(), replicas);
        }
        return new Decision(
                replicas,
                excessBurst,
                scaler.mode(),
                scaler.activity() == Scaler.Activity.ACTIVE,
                scaler.activity(),
                scaler.reason(),
                decider.panicking(),
                s,
                p,
                asked);
    }

    /**
     * A request has come while {@link #asleep}: counts it and decides at once. Later ones need no poke until it sleeps again.
     */
    public Decision poke(long now, int ready) {
        stable.record(now, 1);
        panic.record(now, 1);
        return tick(now, ready);
    }
}
