// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * How many replicas the measured traffic asks for. A pure function: state in, state and decision out; meant to be called
 * every two seconds. Immutable; times are nanoseconds of {@code Clock.nanos()}.
 */
public final class Decider {
    private static final long TICK = 2_000_000_000L;
    private static final int FEWEST_ACTIVATORS = 2;

    private Decider() {}

    /**
     * The most that was wanted at one time.
     *
     * @param tick the number of the tick
     * @param replicas how many were wanted
     */
    public record Peak(long tick, int replicas) {}

    /**
     * What is remembered from one decision to the next.
     *
     * @param panicSince when the traffic was over the panic threshold last; null when there is no panic
     * @param mostInPanic the most replicas wanted since the panic began
     * @param peaks for the scale-down delay: what was wanted lately, falling
     */
    public record State(@Nullable Long panicSince, int mostInPanic, List<Peak> peaks) {
        /** Copies the list. */
        public State {
            peaks = List.copyOf(peaks);
        }

        /**
         * At the start. With more than one replica it panics, so that what runs already goes on until enough has been
         * measured.
         */
        public static State start(long now, int ready) {
            return new State(ready > 1 ? now : null, ready, List.of());
        }

        /** Whether it only scales up for now. */
        public boolean panicking() {
            return panicSince != null;
        }
    }

    /**
     * What is known now.
     *
     * @param now the time
     * @param ready replicas that answer
     * @param stable the metric's average over the stable window, of all replicas together
     * @param panic the same over the panic window
     * @param reachable whether any route leads to the revision
     */
    public record Input(long now, int ready, double stable, double panic, boolean reachable) {}

    /**
     * A decision.
     *
     * @param state for the next time
     * @param wanted replicas, 0 or more, without bounds
     * @param excessBurst what could come at once above the target burst capacity; negative when requests had better queue
     * @param activators how many queues in front of the replicas the load would be worth
     */
    public record Result(State state, int wanted, int excessBurst, int activators) {}

    /** Decides. Values that are negative or no numbers count as zero. */
    public static Result decide(ScalingSettings settings, State state, Input in) {
        double stable = sane(in.stable);
        double panic = sane(in.panic);
        double ready = Math.max(1, in.ready);
        double up = Math.ceil(settings.maxScaleUpRate() * ready);
        double down = in.reachable ? Math.floor(ready / settings.maxScaleDownRate()) : 0;
        double byStable = Math.ceil(stable / settings.target());
        double byPanic = Math.ceil(panic / settings.target());
        int wantStable = activation(settings, byStable, (int) Math.min(Math.max(byStable, down), up));
        int wantPanic = activation(settings, byPanic, (int) Math.min(Math.max(byPanic, down), up));

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
        int wanted = wantStable;
        if (panicSince != null) {
            most = Math.max(most, Math.max(wantStable, wantPanic));
            wanted = most;
        }
        List<Peak> peaks = List.of();
        long delay = settings.scaleDownDelay().toNanos();
        if (delay > 0) {
            peaks = state.peaks;
            if (in.reachable) {
                peaks = delayed(peaks, Math.floorDiv(in.now, TICK), wanted, (delay + TICK - 1) / TICK);
                wanted = peaks.get(0).replicas();
            }
        }
        return new Result(
                new State(panicSince, most, peaks),
                wanted,
                excessBurst(settings, in.ready, panic),
                activators(settings, in.ready));
    }

    /** Excess burst capacity with so many replicas and so much traffic. */
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

    private static int activation(ScalingSettings settings, double asked, int wanted) {
        return settings.activationScale() > 1 && asked > 0 ? Math.max(wanted, settings.activationScale()) : wanted;
    }

    /** The peaks with a new value: falling, of the last so many ticks, the greatest first. */
    private static List<Peak> delayed(List<Peak> peaks, long tick, int wanted, long ticks) {
        List<Peak> next = new ArrayList<>(peaks.size() + 1);
        for (Peak peak : peaks) {
            if (tick - peak.tick() < ticks && peak.replicas() > wanted) {
                next.add(peak);
            }
        }
        next.add(new Peak(tick, wanted));
        return next;
    }

    private static double sane(double value) {
        return value >= 0 ? Math.min(value, Double.MAX_VALUE) : 0;
    }
}
