// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Computes the desired number of replicas from the measured traffic, with Knative's stable and panic modes. A pure
 * function: state in, state and decision out; to be called every two seconds. Immutable; times are nanoseconds of
 * {@code Clock.nanos()}.
 */
public final class ReplicaDecider {
    private static final long TICK = 2_000_000_000L;
    private static final int FEWEST_ACTIVATORS = 2;

    private ReplicaDecider() {}

    /**
     * A past decision that still counts for the scale-down delay.
     *
     * @param tick the number of the tick
     * @param replicas the desired replicas at that tick
     */
    public record Peak(long tick, int replicas) {}

    /**
     * The state between two decisions.
     *
     * @param panicSince when the traffic last exceeded the panic threshold; null outside of panic mode
     * @param mostInPanic the most replicas desired since panic mode began
     * @param peaks for the scale-down delay: the desired replicas of the last ticks, strictly decreasing
     */
    public record State(@Nullable Long panicSince, int mostInPanic, List<Peak> peaks) {
        /** Copies the list. */
        public State {
            peaks = List.copyOf(peaks);
        }

        /**
         * The initial state. With more than one replica it starts in panic mode, which does not scale down: running
         * replicas stay until a stable window has been measured.
         */
        public static State start(long now, int ready) {
            return new State(ready > 1 ? now : null, ready, List.of());
        }

        /** Whether this is panic mode, in which the number of replicas only grows. */
        public boolean panicking() {
            return panicSince != null;
        }
    }

    /**
     * The measurements that a decision is based on.
     *
     * @param now the time
     * @param ready the number of ready replicas
     * @param stable the metric averaged over the stable window, summed over all replicas
     * @param panic the same over the panic window
     * @param reachable whether any route leads to the revision
     */
    public record Input(long now, int ready, double stable, double panic, boolean reachable) {}

    /**
     * A decision.
     *
     * @param state the state for the next decision
     * @param desired the desired replicas before the bounds, 0 or more
     * @param excessBurst spare capacity beyond the target burst capacity; negative when requests should go through the
     *     queue
     * @param activators the number of activators (queues in front of the replicas) that Knative would use for the load
     */
    public record Result(State state, int desired, int excessBurst, int activators) {}

    /**
     * Decides in the steps of Knative's autoscaler: the desired replicas by either window, limited by the maximum
     * scale-up and scale-down rates; panic mode; then the scale-down delay. Values that are negative or not a number
     * count as zero.
     */
    public static Result decide(ScalingSettings settings, State state, Input in) {
        double stable = sane(in.stable);
        double panic = sane(in.panic);
        double ready = Math.max(1, in.ready);
        double up = Math.ceil(settings.maxScaleUpRate() * ready);
        double down = in.reachable ? Math.floor(ready / settings.maxScaleDownRate()) : 0;
        double byStable = Math.ceil(stable / settings.target());
        double byPanic = Math.ceil(panic / settings.target());
        int desiredStable = activation(settings, byStable, (int) Math.min(Math.max(byStable, down), up));
        int desiredPanic = activation(settings, byPanic, (int) Math.min(Math.max(byPanic, down), up));

        // Panic mode begins when the short window desires a multiple of the ready replicas, and ends when that has not
        // been so for a whole stable window. In between the desired number never falls, so a burst is not followed by
        // flapping.
        boolean over = byPanic / ready >= settings.panicThreshold();
        Long panicSince = state.panicSince;
        int most = state.mostInPanic;
        if (over) {
            panicSince = in.now;
        } else if (panicSince != null
                && in.now - panicSince > settings.stableWindow().toNanos()) {
            panicSince = null;
            most = 0;
        }
        int desired = desiredStable;
        if (panicSince != null) {
            most = Math.max(most, Math.max(desiredStable, desiredPanic));
            desired = most;
        }
        List<Peak> peaks = List.of();
        long delay = settings.scaleDownDelay().toNanos();
        if (delay > 0) {
            peaks = state.peaks;
            // The greatest desired number within the delay is in effect. An unreachable revision scales down at once.
            if (in.reachable) {
                peaks = delayed(peaks, Math.floorDiv(in.now, TICK), desired, (delay + TICK - 1) / TICK);
                desired = peaks.get(0).replicas();
            }
        }
        return new Result(
                new State(panicSince, most, peaks),
                desired,
                excessBurst(settings, in.ready, panic),
                activators(settings, in.ready));
    }

    /**
     * The excess burst capacity: capacity of the ready replicas, less the target burst capacity and the present load.
     */
    static int excessBurst(ScalingSettings settings, int ready, double panic) {
        double capacity = settings.targetBurstCapacity();
        if (capacity <= 0) {
            return capacity == 0 ? 0 : -1;
        }
        return (int) Math.floor(ready * settings.total() - capacity - panic);
    }

    private static int activators(ScalingSettings settings, int ready) {
        double capacity = settings.targetBurstCapacity();
        if (capacity == 0) {
            return FEWEST_ACTIVATORS;
        }
        double load = ready * settings.total() + Math.max(0, capacity);
        return (int) Math.max(FEWEST_ACTIVATORS, Math.ceil(load / settings.activatorCapacity()));
    }

    private static int activation(ScalingSettings settings, double load, int desired) {
        return settings.activationScale() > 1 && load > 0 ? Math.max(desired, settings.activationScale()) : desired;
    }

    /**
     * Adds a value to a sliding-window maximum: drops peaks that are older than the window, and those that are not
     * greater than the new value because they can never be the maximum again. The first peak is the maximum.
     */
    private static List<Peak> delayed(List<Peak> peaks, long tick, int desired, long ticks) {
        List<Peak> next = new ArrayList<>(peaks.size() + 1);
        for (Peak peak : peaks) {
            if (tick - peak.tick() < ticks && peak.replicas() > desired) {
                next.add(peak);
            }
        }
        next.add(new Peak(tick, desired));
        return next;
    }

    private static double sane(double value) {
        return value >= 0 ? Math.min(value, Double.MAX_VALUE) : 0;
    }
}
