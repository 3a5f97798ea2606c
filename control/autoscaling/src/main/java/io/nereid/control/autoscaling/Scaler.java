// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

/**
 * Turns the number that the {@link ReplicaDecider} desires into the number of replicas to run: applies the bounds and the
 * initial scale, and scales to zero and back (Knative's KPA reconciler). Pure functions: state in, state and result
 * out. Immutable; times are nanoseconds of {@code Clock.nanos()}.
 */
public final class Scaler {
    /** The desired number while nothing has been measured. */
    public static final int UNKNOWN = -1;

    private static final long ACTIVATION_BUFFER = 30_000_000_000L;

    private Scaler() {}

    /** Whether a revision accepts requests. */
    public enum Activity {
        /** It is starting; requests wait for it. */
        ACTIVATING,
        /** It accepts requests. */
        ACTIVE,
        /** It has no traffic: its replicas have been removed or will be soon. */
        INACTIVE
    }

    /** How requests reach the replicas. */
    public enum Mode {
        /** Directly to a replica: there is capacity for a burst. */
        SERVE,
        /** Through the queue (Knative's activator), which holds them until a replica has capacity. */
        PROXY
    }

    /**
     * The state between two calls.
     *
     * @param activity whether the revision accepts requests
     * @param reason why, in one word: {@code Queued}, {@code NoTraffic}, {@code TimedOut}, or empty
     * @param since when the activity last changed
     * @param mode how requests reach the replicas
     * @param modeSince when the mode last changed
     * @param initialReached whether the initial scale has been reached once
     */
    public record State(
            Activity activity, String reason, long since, Mode mode, long modeSince, boolean initialReached) {
        /** The state of a new revision. */
        public static State start(long now) {
            return new State(Activity.ACTIVATING, "Queued", now, Mode.PROXY, now, false);
        }
    }

    /**
     * The input of a call.
     *
     * @param now the time
     * @param desired the decider's desired replicas, or {@link #UNKNOWN}
     * @param excessBurst the decider's excess burst capacity
     * @param ready the number of ready replicas
     * @param reachable whether any route leads to the revision
     * @param held whether requests verifiably go through the queue; always true within one process
     */
    public record Input(long now, int desired, int excessBurst, int ready, boolean reachable, boolean held) {}

    /**
     * The result of a call.
     *
     * @param state the state for the next call
     * @param replicas the number of replicas to run, or {@link #UNKNOWN}
     * @param apply whether to scale to that number; false leaves the present number unchanged
     * @param recheckAfter nanoseconds after which the passing of time alone may change the result; -1 when it cannot
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

    /** The number of replicas of a revision before its traffic has been measured. */
    public static int initial(ScalingSettings settings) {
        return bounded(settings.min(), settings.max(), settings.initialScale());
    }

    static int bounded(int min, int max, int x) {
        int low = Math.max(x, min);
        return max == 0 ? low : Math.min(low, max);
    }

    private static Step scale(ScalingSettings settings, State state, Input in) {
        if (in.desired < 0 && state.activity != Activity.ACTIVATING) {
            return Step.leave(UNKNOWN, -1);
        }
        int min = in.reachable ? settings.min() : 0;
        if (settings.initialScale() > 1 && !state.initialReached && in.reachable) {
            min = Math.max(min, settings.initialScale());
        }
        int desired = bounded(min, settings.max(), in.desired);
        return desired == 0 ? toZero(settings, state, in) : Step.of(desired);
    }

    /**
     * Scales to zero in stages: an ACTIVE revision keeps one replica for another stable window before it becomes
     * INACTIVE, and only an INACTIVE one loses its last replica. A revision that never became ready counts as failed after
     * the progress deadline.
     */
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

    /**
     * Removes the last replica once requests have gone through the queue for the grace period, so that none is sent to
     * a replica that is being removed, and once the retention period is over.
     */
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

    /** Computes the next activity. {@code reached} stays true once the initial scale was ready. */
    private static State activity(ScalingSettings settings, State state, Input in, int desired) {
        int min = in.reachable ? settings.min() : 0;
        int threshold = state.initialReached ? Math.max(min, 1) : Math.max(min, settings.initialScale());
        boolean reached = state.initialReached || in.ready >= threshold;
        Activity activity = state.activity;
        String reason = state.reason;
        boolean inactive = state.activity == Activity.INACTIVE;
        if (desired == 0 || threshold == 0) {
            reason = state.activity == Activity.ACTIVATING && threshold > 0
                    ? "TimedOut"
                    : inactive ? reason : "NoTraffic";
            activity = Activity.INACTIVE;
        } else if (desired > 0 || !inactive) {
            activity = in.ready < threshold ? Activity.ACTIVATING : Activity.ACTIVE;
            reason = activity == Activity.ACTIVATING ? "Queued" : "";
        }
        long since = activity == state.activity ? state.since : in.now;
        return new State(activity, reason, since, state.mode, state.modeSince, reached);
    }
}
