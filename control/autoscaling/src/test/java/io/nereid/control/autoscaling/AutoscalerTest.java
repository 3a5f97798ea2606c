// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import static io.nereid.control.autoscaling.TestSettings.SECOND;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.control.autoscaling.Autoscaler.Decision;
import io.nereid.control.autoscaling.Scaler.Activity;
import io.nereid.control.autoscaling.Scaler.Mode;
import java.time.Duration;
import java.util.Random;
import org.junit.jupiter.api.Test;

final class AutoscalerTest {
    /** Records and ticks for a number of seconds; the replicas follow at once. */
    private static Decision run(Autoscaler autoscaler, int from, int to, double concurrency) {
        Decision decision = null;
        for (int s = from; s < to; s++) {
            autoscaler.record(s * SECOND, concurrency, concurrency * 10);
            if (decision == null || s % 2 == 0) {
                decision = autoscaler.tick(s * SECOND, autoscaler.desired());
            }
        }
        assertThat(decision).isNotNull();
        return decision;
    }

    @Test
    void aNewRevisionStartsWithItsFirstScaleAndBecomesActiveWhenReady() {
        TestSettings settings = TestSettings.defaults();
        settings.initial = 3;
        Autoscaler autoscaler = new Autoscaler(settings.build(), 0);
        assertThat(autoscaler.desired()).isEqualTo(3);
        Decision starting = autoscaler.tick(0, 2);
        assertThat(starting.active()).isFalse();
        assertThat(starting.reason()).isEqualTo("Queued");
        assertThat(starting.desired()).isEqualTo(3);
        assertThat(autoscaler.tick(2 * SECOND, 3).active()).isTrue();
    }

    @Test
    void withoutMeasurementsNothingChanges() {
        Autoscaler autoscaler = new Autoscaler(TestSettings.defaults().build(), 0, 4, 4);
        Decision decision = autoscaler.tick(0, 4);
        assertThat(decision.desired()).isEqualTo(4);
        assertThat(decision.uncapped()).isEqualTo(Scaler.UNKNOWN);
        assertThat(autoscaler.tick(1000 * SECOND, 4).desired()).isEqualTo(4);
    }

    @Test
    void withoutTrafficScalesToZeroAfterTheWindowAndTheGracePeriod() {
        Autoscaler autoscaler = new Autoscaler(TestSettings.defaults().build(), 0);
        run(autoscaler, 0, 10, 5);
        assertThat(autoscaler.desired()).isEqualTo(1);
        int zero = 0;
        int inactive = 0;
        for (int s = 10; zero == 0 && s < 200; s++) {
            Decision decision = run(autoscaler, s, s + 1, 0);
            inactive = inactive == 0 && decision.activity() == Activity.INACTIVE ? s : inactive;
            zero = decision.desired() == 0 ? s : 0;
        }
        assertThat(inactive).isBetween(68, 72);
        assertThat(zero - inactive).isBetween(0, 31);
        assertThat(autoscaler.asleep()).isTrue();
    }

    @Test
    void aPokeAtZeroDesiresAReplicaAtOnce() {
        Autoscaler autoscaler = new Autoscaler(TestSettings.defaults().build(), 0, 0, 0);
        assertThat(autoscaler.asleep()).isTrue();
        assertThat(run(autoscaler, 0, 100, 0).desired()).isZero();
        Decision decision = autoscaler.poke(100 * SECOND, 0);
        assertThat(decision.desired()).isEqualTo(1);
        assertThat(decision.activity()).isEqualTo(Activity.ACTIVATING);
        assertThat(decision.mode()).isEqualTo(Mode.PROXY);
        assertThat(autoscaler.asleep()).isFalse();
        assertThat(autoscaler.tick(101 * SECOND, 1).active()).isTrue();
    }

    @Test
    void aPokeWakesWithTheActivationScale() {
        TestSettings settings = TestSettings.defaults();
        settings.activation = 3;
        Autoscaler autoscaler = new Autoscaler(settings.build(), 0, 0, 0);
        assertThat(autoscaler.poke(0, 0).desired()).isEqualTo(3);
    }

    @Test
    void aPokeWakesARevisionThatCountsRequestsPerSecond() {
        TestSettings settings = TestSettings.defaults();
        settings.metric = ScalingSettings.Metric.RPS;
        settings.target = 140;
        Autoscaler autoscaler = new Autoscaler(settings.build(), 0, 0, 0);
        assertThat(autoscaler.poke(0, 0).desired()).isEqualTo(1);
    }

    @Test
    void aStartThatNeverBecomesReadyEndsAtItsDeadline() {
        TestSettings settings = TestSettings.defaults();
        settings.deadline = Duration.ofSeconds(20);
        Autoscaler autoscaler = new Autoscaler(settings.build(), 0);
        Decision decision = autoscaler.tick(0, 0);
        for (int s = 0; s <= 50; s += 2) {
            autoscaler.record(s * SECOND, 0, 0);
            decision = autoscaler.tick(s * SECOND, 0);
            assertThat(decision.desired()).isEqualTo(1);
        }
        decision = autoscaler.tick(52 * SECOND, 0);
        assertThat(decision.desired()).isZero();
        assertThat(decision.reason()).isEqualTo("TimedOut");
        assertThat(autoscaler.tick(54 * SECOND, 0).reason()).isEqualTo("TimedOut");
    }

    @Test
    void requestsPerSecondCountWhenTheyAreTheMetric() {
        TestSettings settings = TestSettings.defaults();
        settings.metric = ScalingSettings.Metric.RPS;
        settings.target = 10;
        Autoscaler autoscaler = new Autoscaler(settings.build(), 0);
        assertThat(run(autoscaler, 0, 10, 5).desired()).isEqualTo(5);
    }

    @Test
    void aRevisionWithoutRoutesGoesToZeroDespiteItsMinimum() {
        TestSettings settings = TestSettings.defaults();
        settings.min = 2;
        settings.retention = Duration.ofHours(1);
        Autoscaler autoscaler = new Autoscaler(settings.build(), 0);
        run(autoscaler, 0, 200, 0);
        assertThat(autoscaler.desired()).isEqualTo(2);
        autoscaler.reachable(false);
        run(autoscaler, 200, 300, 0);
        assertThat(autoscaler.desired()).isZero();
    }

    @Test
    void changedSettingsKeepWhatWasMeasured() {
        TestSettings settings = TestSettings.defaults();
        settings.target = 1;
        Autoscaler autoscaler = new Autoscaler(settings.build(), 0);
        run(autoscaler, 0, 30, 6);
        settings.max = 3;
        settings.window = Duration.ofSeconds(120);
        autoscaler.update(settings.build(), 30 * SECOND);
        Decision decision = autoscaler.tick(30 * SECOND, 6);
        assertThat(decision.desired()).isEqualTo(3);
        assertThat(decision.stable()).isEqualTo(6);
        settings.metric = ScalingSettings.Metric.RPS;
        assertThatThrownBy(() -> autoscaler.update(settings.build(), 0)).hasMessageContaining("metric");
    }

    @Test
    void aDecisionDescribesItself() {
        Autoscaler autoscaler = new Autoscaler(TestSettings.defaults().build(), 0);
        assertThat(run(autoscaler, 0, 4, 90).describe())
                .isEqualTo("2 replicas (active, panic; stable 90.00, panic 90.00, uncapped 2)");
        assertThat(new Autoscaler(TestSettings.defaults().build(), 0).tick(0, 0).describe())
                .isEqualTo("1 replica (activating, Queued; stable 0.00, panic 0.00, uncapped -1)");
    }

    /**
     * For random input: no negative numbers, bounds kept, no scaling down in panic, the same decisions from the same
     * history.
     */
    @Test
    void invariantsHoldForRandomInput() {
        long seed = 20_260_101;
        System.Logger log = System.getLogger(AutoscalerTest.class.getName());
        log.log(System.Logger.Level.INFO, "seed {0}", String.valueOf(seed));
        Random random = new Random(seed);
        double[] odd = {Double.NaN, -1, Double.POSITIVE_INFINITY, Double.MAX_VALUE, Double.MIN_VALUE, 0};
        for (int round = 0; round < 300; round++) {
            TestSettings t = TestSettings.defaults();
            t.min = random.nextInt(3);
            t.max = random.nextBoolean() ? 0 : t.min + 1 + random.nextInt(20);
            t.target = random.nextBoolean() ? 0.01 : random.nextDouble() * 50 + 0.01;
            t.total = t.target / 0.7;
            t.burst = random.nextInt(3) - 1;
            t.window = Duration.ofSeconds(6 + random.nextInt(60));
            t.panicWindow = Duration.ofSeconds(1 + random.nextInt(6));
            t.up = 1.01 + random.nextInt(3) * 500;
            t.down = 1.01 + random.nextInt(3);
            t.toZero = random.nextInt(4) != 0;
            t.grace = Duration.ofSeconds(1 + random.nextInt(40));
            t.retention = Duration.ofSeconds(random.nextInt(40));
            t.delay = Duration.ofSeconds(random.nextBoolean() ? 0 : random.nextInt(100));
            t.initial = Math.min(t.max == 0 ? 9 : t.max, random.nextInt(5));
            t.activation = random.nextInt(4) != 0 || t.max == 1 ? 0 : Math.max(2, t.min);
            t.aggregation = TimeWindow.Aggregation.values()[random.nextInt(2)];
            ScalingSettings settings = t.build();
            long now = random.nextLong() / 4;
            Autoscaler one = new Autoscaler(settings, now);
            Autoscaler two = new Autoscaler(settings, now);
            int uncappedInPanic = 0;
            for (int step = 0; step < 300; step++) {
                now += random.nextInt(3) * SECOND + random.nextInt((int) SECOND);
                if (random.nextInt(50) == 0) {
                    now += random.nextInt(200) * SECOND;
                }
                double value = random.nextInt(10) == 0
                        ? odd[random.nextInt(odd.length)]
                        : Math.exp(random.nextDouble() * 14 - 7);
                if (step / 40 % 2 == 1) {
                    value = 0;
                }
                one.record(now, value, value);
                two.record(now, value, value);
                int ready = random.nextInt(4) == 0 ? random.nextInt(30) : one.desired();
                boolean poke = random.nextInt(20) == 0;
                Decision decision = poke ? one.poke(now, ready) : one.tick(now, ready);
                assertThat(poke ? two.poke(now, ready) : two.tick(now, ready)).isEqualTo(decision);
                assertThat(decision.desired()).isGreaterThanOrEqualTo(Math.max(0, settings.min()));
                if (settings.max() > 0) {
                    assertThat(decision.desired()).isLessThanOrEqualTo(settings.max());
                }
                assertThat(decision.stable()).isFinite().isNotNegative();
                assertThat(decision.panic()).isFinite().isNotNegative();
                assertThat(decision.uncapped()).isGreaterThanOrEqualTo(Scaler.UNKNOWN);
                if (!settings.scaleToZero() && settings.initialScale() > 0) {
                    assertThat(decision.desired()).isPositive();
                }
                // A peak that the scale-down delay kept from before the panic may expire during it.
                if (decision.panicking() && settings.scaleDownDelay().isZero()) {
                    assertThat(decision.uncapped()).isGreaterThanOrEqualTo(uncappedInPanic);
                    uncappedInPanic = decision.uncapped();
                } else {
                    uncappedInPanic = 0;
                }
            }
        }
    }
}
