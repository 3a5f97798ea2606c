// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import static io.nereid.control.autoscaling.TestSettings.SECOND;
import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.control.autoscaling.Scaler.Activity;
import io.nereid.control.autoscaling.Scaler.Mode;
import java.time.Duration;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The tables of Knative's scaler: grace 60 s, window 5 min, progress deadline 121 s. */
final class ScalerTest {
    private static final int GRACE = 60;
    private static final int WINDOW = 300;
    private static final int DEADLINE = 121 + 30;
    private static final long NOW = 1_000_000 * SECOND;

    /** One application; written by what differs from an active revision of one replica without traffic. */
    private static final class Case {
        final String name;
        final TestSettings settings = TestSettings.defaults();
        Activity activity = Activity.ACTIVATING;
        double seconds;
        Mode mode = Mode.SERVE;
        double modeSeconds;
        boolean initialReached;
        boolean reachable = true;
        boolean held = true;
        int uncapped;
        int ready = 1;
        int replicas;
        boolean applied;
        boolean rechecked;

        Case(String name) {
            this.name = name;
            settings.grace = Duration.ofSeconds(GRACE);
            settings.window = Duration.ofSeconds(WINDOW);
            settings.deadline = Duration.ofSeconds(121);
        }

        Case is(Activity is, double forSeconds) {
            activity = is;
            seconds = forSeconds;
            return this;
        }

        Case proxied(double forSeconds) {
            mode = Mode.PROXY;
            modeSeconds = forSeconds;
            return this;
        }

        Case uncapped(int desired) {
            uncapped = desired;
            return this;
        }

        Case bounds(int min, int max) {
            settings.min = min;
            settings.max = max;
            return this;
        }

        Case window(int windowSeconds) {
            settings.window = Duration.ofSeconds(windowSeconds);
            return this;
        }

        Case retention(int retentionSeconds) {
            settings.retention = Duration.ofSeconds(retentionSeconds);
            return this;
        }

        Case burst(double capacity) {
            settings.burst = capacity;
            return this;
        }

        Case initial(int scale, boolean reached) {
            settings.initial = scale;
            initialReached = reached;
            return this;
        }

        Case deadline(int deadlineSeconds) {
            settings.deadline = Duration.ofSeconds(deadlineSeconds);
            return this;
        }

        Case neverZero() {
            settings.toZero = false;
            return this;
        }

        Case unreachable() {
            reachable = false;
            return this;
        }

        Case notHeld() {
            held = false;
            return this;
        }

        Case has(int number) {
            replicas = number;
            applied = true;
            return this;
        }

        Case leaves(int number) {
            replicas = number;
            return this;
        }

        Case andLooksAgain() {
            rechecked = true;
            return this;
        }

        Scaler.State state() {
            return new Scaler.State(
                    activity,
                    "",
                    NOW - (long) (seconds * SECOND),
                    mode,
                    NOW - (long) (modeSeconds * SECOND),
                    initialReached);
        }

        Scaler.Result apply() {
            return Scaler.apply(settings.build(), state(), new Scaler.Input(NOW, uncapped, 0, ready, reachable, held));
        }

        @Override
        public String toString() {
            return name;
        }
    }

    private static Case c(String name) {
        return new Case(name);
    }

    private static Stream<Case> cases() {
        return Stream.of(
                c("active, a second before the window ends: one stays")
                        .is(Activity.ACTIVE, WINDOW - 1)
                        .has(1)
                        .andLooksAgain(),
                c("the same with a window of its own")
                        .window(45)
                        .is(Activity.ACTIVE, 44)
                        .has(1)
                        .andLooksAgain(),
                c("active for the window: inactive, replica kept")
                        .is(Activity.ACTIVE, WINDOW)
                        .leaves(0)
                        .andLooksAgain(),
                c("the same with a window of its own")
                        .window(45)
                        .is(Activity.ACTIVE, 45)
                        .leaves(0)
                        .andLooksAgain(),
                c("inactive for the grace period").is(Activity.INACTIVE, GRACE).has(0),
                c("inactive for the grace period but not for the retention")
                        .retention(2 * GRACE)
                        .is(Activity.INACTIVE, GRACE)
                        .leaves(0)
                        .andLooksAgain(),
                c("inactive for grace period and retention")
                        .retention(GRACE)
                        .is(Activity.INACTIVE, GRACE)
                        .has(0),
                c("inactive, a second before the grace period ends")
                        .is(Activity.INACTIVE, GRACE - 1)
                        .leaves(0)
                        .andLooksAgain(),
                c("inactive and held, both a second short")
                        .is(Activity.INACTIVE, GRACE - 1)
                        .proxied(GRACE - 1)
                        .leaves(0)
                        .andLooksAgain(),
                c("inactive, but held for the grace period")
                        .is(Activity.INACTIVE, GRACE - 1)
                        .proxied(GRACE)
                        .has(0),
                c("the same with a shorter retention")
                        .retention(42)
                        .is(Activity.INACTIVE, GRACE - 1)
                        .proxied(GRACE)
                        .has(0),
                c("any burst capacity needs no proof that requests are held")
                        .burst(-1)
                        .is(Activity.INACTIVE, GRACE)
                        .notHeld()
                        .has(0),
                c("not held: it waits")
                        .is(Activity.INACTIVE, GRACE)
                        .notHeld()
                        .leaves(0)
                        .andLooksAgain(),
                c("activating, within the deadline")
                        .is(Activity.ACTIVATING, DEADLINE / 2.0)
                        .leaves(Scaler.UNKNOWN)
                        .andLooksAgain(),
                c("activating, over the deadline")
                        .is(Activity.ACTIVATING, DEADLINE + 1)
                        .has(0),
                c("activating, over a deadline of its own")
                        .deadline(5)
                        .is(Activity.ACTIVATING, 36)
                        .has(0),
                c("the minimum before the grace period ends")
                        .bounds(2, 0)
                        .is(Activity.INACTIVE, GRACE - 1)
                        .has(2),
                c("the minimum after the grace period")
                        .bounds(2, 0)
                        .is(Activity.INACTIVE, GRACE)
                        .has(2),
                c("unreachable: no retention")
                        .retention(10 * GRACE)
                        .unreachable()
                        .is(Activity.INACTIVE, GRACE)
                        .has(0),
                c("unreachable: the grace period still counts")
                        .retention(10 * GRACE)
                        .unreachable()
                        .is(Activity.INACTIVE, GRACE - 1)
                        .leaves(0)
                        .andLooksAgain(),
                c("unreachable: no minimum")
                        .bounds(2, 0)
                        .unreachable()
                        .is(Activity.INACTIVE, GRACE)
                        .has(0),
                c("up").uncapped(10).has(10),
                c("up to the maximum").uncapped(10).bounds(0, 8).has(8),
                c("up from inactive")
                        .uncapped(10)
                        .is(Activity.INACTIVE, GRACE / 2.0)
                        .has(10),
                c("inactive without metrics")
                        .uncapped(-1)
                        .is(Activity.INACTIVE, 0)
                        .leaves(-1),
                c("active without metrics").uncapped(-1).is(Activity.ACTIVE, 0).leaves(-1),
                c("first scale reached, no traffic")
                        .initial(2, true)
                        .is(Activity.ACTIVE, 120)
                        .has(1)
                        .andLooksAgain(),
                c("first scale not reached: it is the minimum")
                        .initial(2, false)
                        .uncapped(1)
                        .has(2),
                c("first scale not reached, without metrics")
                        .initial(5, false)
                        .uncapped(-1)
                        .has(5),
                c("first scale not reached but unreachable")
                        .initial(2, false)
                        .unreachable()
                        .is(Activity.ACTIVE, 120)
                        .has(1)
                        .andLooksAgain(),
                c("a first scale of zero")
                        .initial(0, false)
                        .is(Activity.INACTIVE, 0)
                        .leaves(0)
                        .andLooksAgain(),
                c("never to zero").neverZero().is(Activity.ACTIVE, 0).has(1),
                c("never to zero, minimum two")
                        .neverZero()
                        .bounds(2, 0)
                        .is(Activity.ACTIVE, 0)
                        .has(2),
                c("never to zero, without metrics")
                        .neverZero()
                        .uncapped(-1)
                        .is(Activity.ACTIVE, 0)
                        .leaves(-1));
    }

    @ParameterizedTest
    @MethodSource("cases")
    void oneApplication(Case c) {
        Scaler.Result result = c.apply();
        assertThat(result.replicas()).isEqualTo(c.replicas);
        assertThat(result.apply()).isEqualTo(c.applied);
        assertThat(result.recheckAfter() >= 0).isEqualTo(c.rechecked);
    }

    @Test
    void theRecheckComesWhenTimeAloneChangesTheResult() {
        assertThat(c("").is(Activity.ACTIVE, WINDOW - 7).apply().recheckAfter()).isEqualTo(7 * SECOND);
        assertThat(c("").is(Activity.INACTIVE, GRACE - 7)
                        .proxied(GRACE - 7)
                        .apply()
                        .recheckAfter())
                .isEqualTo(7 * SECOND);
        assertThat(c("").is(Activity.INACTIVE, GRACE)
                        .retention(GRACE + 9)
                        .apply()
                        .recheckAfter())
                .isEqualTo(9 * SECOND);
        assertThat(c("").is(Activity.ACTIVATING, 51).apply().recheckAfter()).isEqualTo(100 * SECOND);
    }

    /**
     * {@code desired} of -1, ready replicas and the minimum against the state before: Knative's table of the condition.
     */
    private record Condition(int uncapped, int ready, int min, Activity before, Activity after) {}

    private static Stream<Condition> conditions() {
        return Stream.of(
                new Condition(3, 1, 2, Activity.INACTIVE, Activity.ACTIVATING),
                new Condition(3, 1, 2, Activity.ACTIVE, Activity.ACTIVATING),
                new Condition(3, 2, 2, Activity.INACTIVE, Activity.ACTIVE),
                new Condition(3, 2, 2, Activity.ACTIVATING, Activity.ACTIVE),
                new Condition(1, 0, 0, Activity.INACTIVE, Activity.ACTIVATING),
                new Condition(1, 1, 0, Activity.ACTIVATING, Activity.ACTIVE),
                new Condition(-1, 0, 2, Activity.INACTIVE, Activity.INACTIVE),
                new Condition(-1, 1, 2, Activity.ACTIVATING, Activity.ACTIVATING),
                new Condition(-1, 1, 2, Activity.ACTIVE, Activity.ACTIVATING),
                new Condition(-1, 2, 2, Activity.INACTIVE, Activity.INACTIVE),
                new Condition(-1, 2, 2, Activity.ACTIVATING, Activity.ACTIVE),
                new Condition(-1, 2, 2, Activity.ACTIVE, Activity.ACTIVE));
    }

    @ParameterizedTest
    @MethodSource("conditions")
    void activityFollowsReadyAndDesiredReplicas(Condition c) {
        Case one = c("").bounds(c.min, 0).is(c.before, 1).uncapped(c.uncapped);
        one.ready = c.ready;
        one.initialReached = true;
        assertThat(one.apply().state().activity()).isEqualTo(c.after);
    }

    @Test
    void reasonsExplainWhyItIsNotActive() {
        assertThat(c("").is(Activity.ACTIVE, WINDOW).apply().state().reason()).isEqualTo("NoTraffic");
        assertThat(c("").is(Activity.ACTIVATING, DEADLINE + 1).apply().state().reason())
                .isEqualTo("TimedOut");
        Case queued = c("").is(Activity.INACTIVE, 5).uncapped(1);
        queued.ready = 0;
        assertThat(queued.apply().state().reason()).isEqualTo("Queued");
        assertThat(c("").uncapped(1).apply().state().reason()).isEmpty();
    }

    @Test
    void theFirstScaleOfZeroIsInactiveAtOnce() {
        Case zero = c("").initial(0, false).uncapped(-1);
        zero.ready = 0;
        Scaler.State state = zero.apply().state();
        assertThat(state.activity()).isEqualTo(Activity.INACTIVE);
        assertThat(state.reason()).isEqualTo("NoTraffic");
        assertThat(state.initialReached()).isTrue();
    }

    @Test
    void requestsBypassTheQueueOnlyWithReplicasAndBurstCapacity() {
        record Row(int uncapped, int burst, Mode mode) {}
        for (Row row : new Row[] {
            new Row(2, 0, Mode.SERVE),
            new Row(2, 12, Mode.SERVE),
            new Row(2, -1, Mode.PROXY),
            new Row(0, 12, Mode.PROXY),
            new Row(-1, 12, Mode.PROXY)
        }) {
            Scaler.State state = new Scaler.State(Activity.INACTIVE, "NoTraffic", NOW, Mode.PROXY, NOW, true);
            Scaler.Result result = Scaler.apply(
                    TestSettings.defaults().build(),
                    state,
                    new Scaler.Input(NOW + 1, row.uncapped, row.burst, 1, true, true));
            assertThat(result.state().mode()).as("%s", row).isEqualTo(row.mode);
            assertThat(result.state().modeSince()).isEqualTo(row.mode == Mode.PROXY ? NOW : NOW + 1);
        }
    }
}
