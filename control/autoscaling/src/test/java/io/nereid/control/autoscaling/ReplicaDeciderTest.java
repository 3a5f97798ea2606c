// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import static io.nereid.control.autoscaling.TestSettings.SECOND;
import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** The decisions of Knative's published tables: target utilisation 75 %, rates of 10, threshold 2, window 60 s. */
final class ReplicaDeciderTest {
    private static TestSettings tables(double target, double burst) {
        TestSettings settings = TestSettings.defaults();
        settings.target = target;
        settings.total = target / 0.75;
        settings.burst = burst;
        settings.up = 10;
        settings.down = 10;
        settings.activatorCapacity = 150;
        return settings;
    }

    private static int burst(double target, double burst, double panic, int ready) {
        return (int) Math.floor(target / 0.75 * ready - burst - panic);
    }

    /** A decider with its state, as a test wants to drive it. */
    private static final class Driver {
        ScalingSettings settings;
        ReplicaDecider.State state = new ReplicaDecider.State(null, 0, List.of());
        boolean reachable = true;

        Driver(TestSettings settings) {
            this.settings = settings.build();
        }

        ReplicaDecider.Result decide(double seconds, int ready, double stable, double panic) {
            long now = (long) (seconds * SECOND);
            ReplicaDecider.Result result = ReplicaDecider.decide(
                    settings, state, new ReplicaDecider.Input(now, ready, stable, panic, reachable));
            state = result.state();
            return result;
        }

        int desired(double seconds, int ready, double stable, double panic) {
            return decide(seconds, ready, stable, panic).desired();
        }
    }

    private record Row(
            String name,
            double target,
            double targetBurst,
            int ready,
            double stable,
            double panic,
            int desired,
            int excessBurst,
            Consumer<TestSettings> change,
            boolean reachable,
            boolean panicking) {
        @Override
        public String toString() {
            return name;
        }

        Row(
                String name,
                double target,
                double targetBurst,
                int ready,
                double stable,
                double panic,
                int desired,
                int excessBurst) {
            this(name, target, targetBurst, ready, stable, panic, desired, excessBurst, s -> {}, true, false);
        }
    }

    private static Stream<Row> rows() {
        return Stream.of(
                new Row("no load wants nothing", 10, 100, 1, 0, 0, 0, burst(10, 100, 0, 1)),
                new Row("any burst is never in excess", 181, -1, 1, 21, 26, 1, -1),
                new Row("no burst capacity is always enough", 10, 0, 1, 50, 49, 5, 0),
                new Row("load over the target scales up", 10, 100, 1, 50, 50, 5, burst(10, 100, 50, 1)),
                new Row("load at the target changes nothing", 10, 100, 5, 50, 50, 5, burst(10, 100, 50, 5)),
                new Row("panic counts double load at once", 10, 84, 1, 50, 100, 10, burst(10, 84, 100, 1)),
                new Row(
                        "in panic the stable value counts when it is larger",
                        1,
                        100,
                        5,
                        50,
                        30,
                        50,
                        burst(1, 100, 30, 5),
                        s -> {},
                        true,
                        true),
                new Row(
                        "in panic the panic value counts when it is larger",
                        1,
                        100,
                        5,
                        20,
                        30,
                        30,
                        burst(1, 100, 30, 5),
                        s -> {},
                        true,
                        true),
                new Row(
                        "the smallest growth is one replica",
                        1,
                        1982,
                        2,
                        3,
                        3.1,
                        3,
                        burst(1, 1982, 3.1, 2),
                        s -> s.up = 1.1,
                        true,
                        false),
                new Row(
                        "shrinking is limited",
                        10,
                        1982,
                        100,
                        1,
                        1,
                        90,
                        burst(10, 1982, 1, 100),
                        s -> s.down = 1.1,
                        true,
                        false),
                new Row(
                        "shrinking is not limited where no route leads",
                        10,
                        1982,
                        100,
                        1,
                        1,
                        1,
                        burst(10, 1982, 1, 100),
                        s -> s.down = 1.1,
                        false,
                        false),
                new Row(
                        "without ready replicas the rates count from one",
                        10,
                        81,
                        0,
                        1000,
                        888,
                        10,
                        burst(10, 81, 888, 0)));
    }

    @ParameterizedTest
    @MethodSource("rows")
    void oneDecision(Row row) {
        TestSettings settings = tables(row.target, row.targetBurst);
        row.change.accept(settings);
        Driver driver = new Driver(settings);
        driver.reachable = row.reachable;
        if (row.panicking) {
            driver.state = new ReplicaDecider.State(-5 * SECOND, 5, List.of());
        }
        ReplicaDecider.Result result = driver.decide(0, row.ready, row.stable, row.panic);
        assertThat(result.desired()).isEqualTo(row.desired);
        assertThat(result.excessBurst()).isEqualTo(row.excessBurst);
    }

    @Test
    void aSlowIncreaseEndsThePanicAfterTheStableWindow() {
        Driver driver = new Driver(tables(1, 98));
        assertThat(driver.desired(0, 10, 11, 25)).isEqualTo(25);
        assertThat(driver.state.panicSince()).isZero();
        assertThat(driver.desired(30, 40, 30, 41)).isEqualTo(41);
        assertThat(driver.state.panicSince()).isZero();
        assertThat(driver.desired(62, 55, 50, 56)).isEqualTo(50);
        assertThat(driver.state.panicking()).isFalse();
        assertThat(driver.state.mostInPanic()).isZero();
    }

    @Test
    void aSurgeInPanicExtendsIt() {
        Driver driver = new Driver(tables(1, 98));
        assertThat(driver.desired(0, 10, 11, 25)).isEqualTo(25);
        assertThat(driver.desired(30, 40, 30, 80)).isEqualTo(80);
        assertThat(driver.state.panicSince()).isEqualTo(30 * SECOND);
    }

    @Test
    void panicEndsOnlyWhenMoreThanTheStableWindowHasPassed() {
        Driver driver = new Driver(tables(10, 98));
        assertThat(driver.desired(0, 1, 100, 100)).isEqualTo(10);
        assertThat(driver.desired(60, 10, 1, 1)).isEqualTo(10);
        assertThat(driver.desired(60.000000001, 10, 1, 1)).isEqualTo(1);
    }

    @Test
    void inStableModeItScalesDown() {
        Driver driver = new Driver(tables(10, 98));
        assertThat(driver.desired(0, 8, 100, 100)).isEqualTo(10);
        assertThat(driver.desired(2, 8, 50, 50)).isEqualTo(5);
    }

    @Test
    void stableLoadGrowsWithoutPanic() {
        Driver driver = new Driver(tables(10, 101));
        assertThat(driver.desired(0, 1, 50, 10)).isEqualTo(5);
        assertThat(driver.desired(0, 1, 100, 10)).isEqualTo(10);
        assertThat(driver.state.panicking()).isFalse();
    }

    @Test
    void withoutTrafficDesiresZero() {
        Driver driver = new Driver(tables(10, 75));
        assertThat(driver.desired(0, 1, 1, 0)).isEqualTo(1);
        assertThat(driver.desired(2, 1, 0, 0)).isZero();
    }

    @Test
    void theActivationScaleIsTheFewestThatAreNotZero() {
        TestSettings settings = tables(10, 75);
        settings.activation = 2;
        Driver driver = new Driver(settings);
        assertThat(driver.desired(0, 1, 0, 0)).isZero();
        assertThat(driver.desired(2, 1, 1, 0)).isEqualTo(2);
        assertThat(driver.desired(4, 2, 35, 35)).isEqualTo(4);
    }

    @Test
    void exponentialGrowthIsTrackedAndThenStable() {
        Driver driver = new Driver(tables(1, 101));
        assertThat(driver.desired(0, 1, 6, 6)).isEqualTo(6);
        assertThat(driver.desired(0.1, 6, 36, 36)).isEqualTo(36);
        assertThat(driver.state.panicSince()).isEqualTo(SECOND / 10);
        assertThat(driver.desired(1.1, 36, 216, 216)).isEqualTo(216);
        assertThat(driver.state.panicSince()).isEqualTo(11 * SECOND / 10);
        assertThat(driver.desired(1.1, 216, 1296, 1296)).isEqualTo(1296);
        assertThat(driver.desired(2.1, 1296, 1296, 1296)).isEqualTo(1296);
    }

    @Test
    void afterPanicItScalesDown() {
        Driver driver = new Driver(tables(10, 93));
        assertThat(driver.desired(0, 1, 100, 100)).isEqualTo(10);
        assertThat(driver.desired(0, 10, 100, 1000)).isEqualTo(100);
        assertThat(driver.desired(30, 10, 1, 1)).isEqualTo(100);
        assertThat(driver.desired(61, 10, 1, 1)).isEqualTo(1);
    }

    @Test
    void growthAndShrinkingAreLimitedByTheirRates() {
        Driver up = new Driver(tables(10, 61));
        assertThat(up.desired(0, 1, 1000, 1001)).isEqualTo(10);
        assertThat(up.desired(2, 10, 1000, 1001)).isEqualTo(100);
        Driver down = new Driver(tables(10, 61));
        assertThat(down.desired(0, 100, 1, 1)).isEqualTo(10);
        assertThat(down.desired(2, 10, 1, 1)).isEqualTo(1);
    }

    @Test
    void anotherTargetCountsFromTheNextDecision() {
        Driver driver = new Driver(tables(10, 77));
        assertThat(driver.desired(0, 1, 100, 101)).isEqualTo(10);
        driver.settings = tables(1, 71).build();
        assertThat(driver.desired(0, 10, 100, 101)).isEqualTo(100);
    }

    @Test
    void withMoreThanOneReplicaItStartsInPanic() {
        assertThat(ReplicaDecider.State.start(0, 0)).isEqualTo(new ReplicaDecider.State(null, 0, List.of()));
        assertThat(ReplicaDecider.State.start(0, 1)).isEqualTo(new ReplicaDecider.State(null, 1, List.of()));
        assertThat(ReplicaDecider.State.start(7, 2)).isEqualTo(new ReplicaDecider.State(7L, 2, List.of()));
    }

    private static TestSettings delayed(int seconds) {
        TestSettings settings = tables(10, 0);
        settings.panicThreshold = 100;
        settings.delay = Duration.ofSeconds(seconds);
        return settings;
    }

    @Test
    void theScaleDownDelayKeepsTheMostOfItsTime() {
        Driver driver = new Driver(delayed(300));
        assertThat(driver.desired(2, 0, 40, 40)).isEqualTo(4);
        assertThat(driver.desired(300, 0, 0, 0)).isEqualTo(4);
        assertThat(driver.desired(302, 0, 0, 0)).isZero();

        assertThat(driver.desired(540, 0, 40, 40)).isEqualTo(4);
        assertThat(driver.desired(600, 0, 30, 30)).isEqualTo(4);
        assertThat(driver.desired(660, 0, 0, 0)).isEqualTo(4);
        assertThat(driver.desired(840, 0, 0, 0)).isEqualTo(3);
        assertThat(driver.desired(900, 0, 0, 0)).isZero();
    }

    @Test
    void theScaleDownDelayEndsWhenNoRouteLeadsHere() {
        Driver driver = new Driver(delayed(300));
        assertThat(driver.desired(2, 0, 40, 40)).isEqualTo(4);
        assertThat(driver.desired(60, 0, 0, 0)).isEqualTo(4);
        driver.reachable = false;
        assertThat(driver.desired(62, 0, 0, 0)).isZero();
    }

    @Test
    void withoutDelayItScalesDownWithinOneTick() {
        Driver driver = new Driver(delayed(0));
        assertThat(driver.desired(0, 0, 40, 40)).isEqualTo(4);
        assertThat(driver.desired(0.5, 0, 20, 20)).isEqualTo(2);
    }

    @Test
    void queuesGrowWithTheLoadTheyCover() {
        TestSettings settings = tables(75, 211);
        assertThat(new Driver(settings).decide(0, 0, 0, 0).activators()).isEqualTo(2);
        assertThat(new Driver(settings).decide(0, 10, 0, 0).activators()).isEqualTo(9);
        settings.burst = -1;
        assertThat(new Driver(settings).decide(0, 10, 0, 0).activators()).isEqualTo(7);
        settings.burst = 0;
        assertThat(new Driver(settings).decide(0, 1000, 0, 0).activators()).isEqualTo(2);
    }

    @Test
    void valuesThatAreNotANumberCountAsZero() {
        Driver driver = new Driver(tables(10, 10));
        assertThat(driver.desired(0, 1, Double.NaN, -4)).isZero();
        assertThat(driver.decide(0, 3, Double.NaN, Double.NaN).excessBurst()).isEqualTo(30);
        assertThat(driver.desired(0, 1, Double.POSITIVE_INFINITY, 0)).isEqualTo(10);
    }
}
