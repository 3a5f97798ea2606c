// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

/**
 * Turns what the {@link Decider} wants into the number of replicas to have: bounds, first scale, and the way to zero and
 * back. Pure functions: state in, state and result out. Immutable; times are nanoseconds of {@code Clock.nanos()}.
 */
public final class Scaler {
    /** The wanted number when nothing is known. */
    public static final int UNKNOWN = -1;

    private static final long ACTIVATION_BUFFER = 30_000_000_000L;

    private Scaler() {}

    /** Whether a revision takes requests. */
    public enum Activity {
        /** It starts; requests wait for it. */
        ACTIVATING,
        /** It takes requests. */
        ACTIVE,
        /** Nobody asks for it: its replicas are gone or go soon. */
        INACTIVE
    }

    /** How requests reach the replicas. */
    public enum Mode {
        /** Straight to a replica: there is capacity for a burst. */
        SERVE,
        /** By way of the queue that holds them until a replica has room. */
        PROXY
    }

    /**
     * What is remembered from one application to the next.
     *
     * @param activity whether it takes requests
     * @param reason why, in one word: {@code Queued}, {@code NoTraffic}, {@code TimedOut}, or empty
     * @param since when the activity changed last
     * @param mode how requests reach it
     * @param modeSince when that changed last
     * @param initialReached whether the first scale has been reached once
     */
    public record State(
            Activity activity, String reason, long since, Mode mode, long modeSince, boolean initialReached) {
        /** A new revision. */
        public static State start(long now) {
            return new State(Activity.ACTIVATING, "Queued", now, Mode.PROXY, now, false);
        }
    }

    /**
     * What is known now.
     *
     * @param now the time
     * @param wanted of the decider, or {@link #UNKNOWN}
     * @param excessBurst of the decider
     * @param ready replicas that answer
     * @param reachable whether any route leads here
     * @param held whether requests verifiably come by way of the queue; always so in one process
     */
    public record Input(long now, int wanted, int excessBurst, int ready, boolean reachable, boolean held) {}

    /**
     * What to do.
     *
     * @param state for the next time
     * @param replicas how many to have, or {@link #UNKNOWN}
     * @param apply whether to have so many; false leaves the number as it is
     * @param recheckAfter nanoseconds after which time alone may change the result; -1 when it will not
     */
    public record Result(State state, int replicas, boolean apply, long recheckAfter) {}

    private record Step(int replicas, boolean apply, long recheckAfter) {
        static Step of(int replicas) {
            return new Step(replicas, true, -1);
        }

        static Step leave(int replicas, long recheckAfter) {
            return new Step(replicas, false, recheckAfter);
        }
    }

    /** Applies the bounds and the state machine. */
    public static Result apply(ScalingSettings settings, State state, Input in) {
        Step step = scale(settings, state, in);
        Mode mode = step.replicas > 0 && in.excessBurst >= 0 ? Mode.SERVE : Mode.PROXY;
        State next = activity(settings, state, in, step.replicas);
        boolean changed = mode != state.mode;
        return new Result(
                new State(
                        next.activity,
                        next.reason,
                        next.since,
                        mode,
                        changed ? in.now : state.modeSince,
                        next.initialReached),
                step.replicas,
                step.apply,
                step.recheckAfter);
    }

    /** Number of replicas that a revision has before anything is known of its traffic. */
    public static int initial(ScalingSettings settings) {
        return bounded(settings.min(), settings.max(), settings.initialScale());
    }

    static int bounded(int min, int max, int x) {
        int low = Math.max(x, min);
        return max == 0 ? low : Math.min(low, max);
    }

    private static Step scale(ScalingSettings settings, State state, Input in) {
        if (in.wanted < 0 && state.activity != Activity.ACTIVATING) {
            return Step.leave(UNKNOWN, -1);
        }
        int min = in.reachable ? settings.min() : 0;
        if (settings.initialScale() > 1 && !state.initialReached && in.reachable) {
            min = Math.max(min, settings.initialScale());
        }
        int wanted = bounded(min, settings.max(), in.wanted);
        return wanted == 0 ? toZero(settings, state, in) : Step.of(wanted);
    }

    private static Step toZero(ScalingSettings settings, State state, Input in) {
        if (!settings.scaleToZero()) {
            return Step.of(1);
        }
        long elapsed = in.now - state.since;
        return switch (state.activity) {
            case ACTIVATING -> {
                long deadline = settings.progressDeadline().toNanos() + ACTIVATION_BUFFER;
                yield elapsed > deadline ? Step.of(0) : Step.leave(UNKNOWN, deadline - elapsed);
            }
            case ACTIVE -> {
                long window = settings.stableWindow().toNanos();
                yield elapsed >= window ? Step.leave(0, 0) : new Step(1, true, window - elapsed);
            }
            case INACTIVE -> fromInactive(settings, state, in, elapsed);
        };
    }

    private static Step fromInactive(ScalingSettings settings, State state, Input in, long elapsed) {
        if (settings.targetBurstCapacity() != -1 && !in.held) {
            return Step.leave(0, 1_000_000_000L);
        }
        long grace = settings.scaleToZeroGracePeriod().toNanos();
        long retention = in.reachable ? settings.scaleToZeroPodRetentionPeriod().toNanos() : 0;
        if (elapsed >= Math.max(grace, retention)) {
            return Step.of(0);
        }
        if (elapsed < retention) {
            return Step.leave(0, retention - elapsed);
        }
        long proxied = state.mode == Mode.PROXY ? in.now - state.modeSince : 0;
        return proxied >= grace ? Step.of(0) : Step.leave(0, grace - proxied);
    }

    private static State activity(ScalingSettings settings, State state, Input in, int wanted) {
        int min = in.reachable ? settings.min() : 0;
        int threshold = state.initialReached ? Math.max(min, 1) : Math.max(min, settings.initialScale());
        boolean reached = state.initialReached || in.ready >= threshold;
        Activity activity = state.activity;
        String reason = state.reason;
        boolean inactive = state.activity == Activity.INACTIVE;
        if (wanted == 0 || threshold == 0) {
            reason = state.activity == Activity.ACTIVATING && threshold > 0
                    ? "TimedOut"
                    : inactive ? reason : "NoTraffic";
            activity = Activity.INACTIVE;
        } else if (wanted > 0 || !inactive) {
            activity = in.ready < threshold ? Activity.ACTIVATING : Activity.ACTIVE;
            reason = activity == Activity.ACTIVATING ? "Queued" : "";
        }
        long since = activity == state.activity ? state.since : in.now;
        return new State(activity, reason, since, state.mode, state.modeSince, reached);
    }
}
