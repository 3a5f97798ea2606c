// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import io.nereid.base.ServingException;
import java.util.Locale;

/**
 * The autoscaler of one revision, after Knative's KPA: the stable and the panic {@link TimeWindow}, the
 * {@link ReplicaDecider} and the {@link Scaler}. Confined to one thread at a time; times are nanoseconds of
 * {@code Clock.nanos()}.
 *
 * <p>The owner {@linkplain #record records} a {@link ConcurrencyMeter}'s report every second, calls {@link #tick} every
 * two seconds, and {@linkplain #poke pokes} when a request arrives while {@link #asleep}. Each decision contains the
 * desired number of replicas, which is valid until the next decision.
 *
 * <pre>{@code
 * Autoscaler autoscaler = new Autoscaler(settings, clock.nanos());
 * // every second
 * ConcurrencyMeter.Report report = meter.report(clock.nanos());
 * autoscaler.record(clock.nanos(), report.concurrency(), report.requestsPerSecond());
 * // every two seconds
 * Autoscaler.Decision decision = autoscaler.tick(clock.nanos(), readyReplicas);
 * scaleTo(decision.desired());
 * }</pre>
 */
public final class Autoscaler {
    /** How often {@link #tick} is due, in nanoseconds. */
    public static final long TICK_NANOS = 2_000_000_000L;
    /** How often {@link #record} is due, in nanoseconds. */
    public static final long RECORD_NANOS = 1_000_000_000L;

    /**
     * A decision and the measurements that it is based on.
     *
     * @param desired the desired number of replicas, never negative; unchanged while nothing has been measured
     * @param excessBurst spare capacity beyond the target burst capacity; negative when requests should go through the
     *     queue
     * @param mode how requests should reach the replicas
     * @param active whether the revision accepts requests; also false while it starts
     * @param activity the same as one of three states
     * @param reason why it is not active: {@code Queued}, {@code NoTraffic}, {@code TimedOut}; otherwise empty
     * @param panicking whether the revision is in panic mode, in which it only scales up
     * @param stable the metric averaged over the stable window, summed over all replicas
     * @param panic the metric averaged over the panic window
     * @param uncapped the desired replicas before the bounds and the scale-to-zero rules; -1 while nothing has been
     *     measured
     */
    public record Decision(
            int desired,
            int excessBurst,
            Scaler.Mode mode,
            boolean active,
            Scaler.Activity activity,
            String reason,
            boolean panicking,
            double stable,
            double panic,
            int uncapped) {
        /**
         * The decision in one line for logs and events:
         * {@code 3 replicas (active, panic; stable 12.00, panic 40.25, uncapped 3)}.
         */
        public String describe() {
            String state = activity.name().toLowerCase(Locale.ROOT)
                    + (reason.isEmpty() ? "" : ", " + reason)
                    + (panicking ? ", panic" : "");
            return String.format(
                    Locale.ROOT,
                    "%d %s (%s; stable %.2f, panic %.2f, uncapped %d)",
                    desired,
                    desired == 1 ? "replica" : "replicas",
                    state,
                    stable,
                    panic,
                    uncapped);
        }
    }

    private ScalingSettings settings;
    private final TimeWindow stable;
    private final TimeWindow panic;
    private ReplicaDecider.State decider;
    private Scaler.State scaler;
    private boolean reachable = true;
    private int replicas;
    private int uncapped = Scaler.UNKNOWN;
    private int excessBurst;

    /** Creates the autoscaler of a new revision, which starts with {@link Scaler#initial} replicas. */
    public Autoscaler(ScalingSettings settings, long now) {
        this(settings, now, 0, Scaler.initial(settings));
    }

    /**
     * Creates the autoscaler of an existing revision, for example after a restart of the server. A revision with
     * replicas keeps them until a window has been measured; a revision without replicas stays inactive.
     *
     * @param ready the number of ready replicas
     * @param replicas the number of replicas that exist or were desired
     */
    public Autoscaler(ScalingSettings settings, long now, int ready, int replicas) {
        this.settings = settings;
        this.stable = new TimeWindow(settings.stableSeconds(), settings.aggregation());
        this.panic = new TimeWindow(settings.panicSeconds(), settings.aggregation());
        this.decider = ReplicaDecider.State.start(now, ready);
        this.replicas = Math.max(0, replicas);
        Scaler.State start = Scaler.State.start(now);
        this.scaler = replicas > 0 || settings.initialScale() == 0
                ? start
                : new Scaler.State(Scaler.Activity.INACTIVE, "NoTraffic", now, start.mode(), now, true);
        this.excessBurst = ReplicaDecider.excessBurst(settings, this.replicas, 0);
    }

    /** The settings. */
    public ScalingSettings settings() {
        return settings;
    }

    /** The desired number of replicas now. */
    public int desired() {
        return replicas;
    }

    /** Whether the revision is scaled to zero or about to be: the next request must {@link #poke}. */
    public boolean asleep() {
        return replicas == 0 || scaler.activity() == Scaler.Activity.INACTIVE;
    }

    /**
     * Changes the settings and keeps the measurements.
     *
     * @throws ServingException INVALID_ARGUMENT when the metric or the aggregation changes: the recorded values would
     *     be those of another metric
     */
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

    /**
     * Sets whether any route leads to the revision. An unreachable revision scales to zero, whatever its bounds are.
     */
    public void reachable(boolean reachable) {
        this.reachable = reachable;
    }

    /**
     * Records the measurements of one second, summed over all replicas, as {@link ConcurrencyMeter#report} returns
     * them.
     */
    public void record(long now, double concurrency, double requestsPerSecond) {
        double value = settings.metric() == ScalingSettings.Metric.RPS ? requestsPerSecond : concurrency;
        stable.record(now, value);
        panic.record(now, value);
    }

    /**
     * Makes the next decision. An empty window gives no new decision of the {@link ReplicaDecider}: the revision keeps its
     * replicas instead of dropping to zero when no measurement arrives.
     *
     * @param ready the number of ready replicas
     */
    public Decision tick(long now, int ready) {
        double s = stable.average(now);
        double p = panic.average(now);
        if (!stable.isEmpty(now)) {
            ReplicaDecider.Result result =
                    ReplicaDecider.decide(settings, decider, new ReplicaDecider.Input(now, ready, s, p, reachable));
            decider = result.state();
            uncapped = result.desired();
            excessBurst = result.excessBurst();
        }
        Scaler.Result result =
                Scaler.apply(settings, scaler, new Scaler.Input(now, uncapped, excessBurst, ready, reachable, true));
        scaler = result.state();
        if (result.apply()) {
            replicas = result.replicas();
        } else if (reachable) {
            // The scaler left the number unchanged, but the bounds may have changed since it was decided.
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
                uncapped);
    }

    /**
     * Records the request that arrived while {@link #asleep} and decides at once, without waiting for the next tick.
     * Later requests need no poke until the revision is asleep again.
     */
    public Decision poke(long now, int ready) {
        stable.record(now, 1);
        panic.record(now, 1);
        return tick(now, ready);
    }
}
