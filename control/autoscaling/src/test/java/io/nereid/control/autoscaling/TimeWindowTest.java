// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.autoscaling;

import static io.nereid.control.autoscaling.TestSettings.SECOND;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.nereid.control.autoscaling.TimeWindow.Aggregation;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

final class TimeWindowTest {
    private static final List<Long> ORIGINS = List.of(0L, 1_763_736_000_250_000_000L, -98_765_432_100_000_000L);

    private static TimeWindow linear(int seconds) {
        return new TimeWindow(seconds, Aggregation.LINEAR);
    }

    private static TimeWindow filled(Aggregation aggregation, long origin, int... values) {
        TimeWindow window = new TimeWindow(5, aggregation);
        for (int i = 0; i < values.length; i++) {
            window.record(origin + i * SECOND, values[i]);
        }
        return window;
    }

    @Test
    void valuesOfOneSecondAddUp() {
        for (long t : ORIGINS) {
            TimeWindow window = linear(120);
            long start = Math.floorDiv(t, SECOND) * SECOND;
            assertThat(window.isEmpty(start)).isTrue();
            window.record(start, 1);
            window.record(start + SECOND / 10, 10);
            window.record(start + SECOND, 1);
            window.record(start + 3 * SECOND, 1);
            assertThat(window.sum(start + 3 * SECOND)).isEqualTo(13);
            assertThat(window.isEmpty(start + 60 * SECOND)).isFalse();
        }
    }

    @Test
    void reportsOfSecondsMayComeInAnyOrder() {
        TimeWindow window = linear(60);
        int[] order = {0, 3, 2, 1, 4};
        for (int p = 0; p < 5; p++) {
            for (int v = 0; v < 5; v++) {
                window.record(order[p] * SECOND, p + v);
            }
        }
        assertThat(window.sum(4 * SECOND)).isEqualTo(100);
        assertThat(window.average(4 * SECOND)).isEqualTo(20);
    }

    @Test
    void aYoungWindowAveragesOverItsLife() {
        for (long t : ORIGINS) {
            TimeWindow window = linear(5);
            window.record(t, 1);
            assertThat(window.average(t)).isEqualTo(1);
            for (int i = 1; i < 5; i++) {
                window.record(t + i * SECOND, i + 1);
            }
            assertThat(window.average(t + 4 * SECOND)).isEqualTo(3);
        }
    }

    @Test
    void aReaderThatLagsSeesTheSame() {
        assertThat(filled(Aggregation.LINEAR, 0, 1, 2, 3, 4, 5).average(3600 * SECOND / 1000))
                .isEqualTo(3);
    }

    @Test
    void secondsWithoutAReportYetDoNotCount() {
        TimeWindow window = filled(Aggregation.LINEAR, 0, 1, 2, 3, 4, 5);
        assertThat(window.average(6 * SECOND)).isEqualTo((15.0 - 1 - 2) / 3);
        assertThat(window.average(8 * SECOND)).isEqualTo(5);
        assertThat(window.average(9 * SECOND)).isZero();
        assertThat(window.average(10 * SECOND)).isZero();
    }

    @Test
    void secondsInTheMiddleWithoutAReportCountAsZero() {
        TimeWindow window = filled(Aggregation.LINEAR, 0, 1, 2, 3, 4, 5);
        window.record(6 * SECOND, 91);
        assertThat(window.average(6 * SECOND)).isEqualTo((15.0 - 1 - 2 + 91) / 5);
        TimeWindow holes = filled(Aggregation.LINEAR, 0, 1, 2, 3, 4, 5);
        holes.record(8 * SECOND, 2);
        assertThat(holes.sum(8 * SECOND)).isEqualTo(7);
    }

    @Test
    void lateReportsCountUnlessTheyAreOlderThanTheWindow() {
        TimeWindow window = filled(Aggregation.LINEAR, 0, 1, 2, 3, 4, 5);
        long t = 60 * SECOND;
        window.record(t, 1984);
        assertThat(window.average(t)).isEqualTo(1984);
        window.record(t - 3 * SECOND, 4);
        assertThat(window.average(t)).isEqualTo((4.0 + 1984) / 4);
        t += SECOND;
        window.record(t, 5);
        assertThat(window.average(t)).isEqualTo((4.0 + 1984 + 5) / 5);
        window.record(t - 3 * SECOND, 10);
        assertThat(window.average(t)).isEqualTo((4.0 + 10 + 1984 + 5) / 5);
        window.record(t - 6 * SECOND, 10);
        window.record(t - 5 * SECOND, 10);
        assertThat(window.average(t)).isEqualTo((4.0 + 10 + 1984 + 5) / 5);
        window.record(t + 5 * SECOND, 10);
        assertThat(window.average(t + 5 * SECOND)).isEqualTo(10);
    }

    @Test
    void fallingOrderFillsTheWindowToo() {
        TimeWindow window = linear(5);
        for (int i = 8; i >= 0; i--) {
            window.record(i * SECOND, 5);
        }
        assertThat(window.average(5 * SECOND)).isEqualTo(5);
    }

    @Test
    void theAverageHasSixDecimals() {
        TimeWindow window = linear(5);
        window.record(0, 1);
        window.record(2 * SECOND, 0);
        assertThat(window.average(2 * SECOND)).isEqualTo(0.333333);
    }

    @ParameterizedTest
    @ValueSource(ints = {100, 60, 42})
    void longWindowsWeighTheirNewestSecondByAFifth(int buckets) {
        assertThat(TimeWindow.coefficient(buckets)).isEqualTo(0.2);
    }

    @Test
    void shortWindowsWeighTheirNewestSecondMore() {
        assertThat(TimeWindow.coefficient(40)).isCloseTo(0.20567, within(1e-5));
        assertThat(TimeWindow.coefficient(6)).isCloseTo(0.78456, within(1e-5));
    }

    @Test
    void theWeightedAverageFallsBySteps() {
        TimeWindow window = new TimeWindow(5, Aggregation.WEIGHTED_EXPONENTIAL);
        double m = TimeWindow.coefficient(5);
        window.record(0, 2);
        assertThat(window.average(0)).isEqualTo(2 * m);
        assertThat(window.average(SECOND)).isCloseTo(2 * m * (1 - m), within(1e-12));
        window.record(SECOND, 2);
        assertThat(window.average(SECOND)).isCloseTo(2 * m * (1 - m) + 2 * m, within(1e-12));
        for (int i = 0; i < 5; i++) {
            window.record((2 + i) * SECOND, i + 2);
        }
        double expected = 0;
        for (int i = 0; i < 5; i++) {
            expected += (6 - i) * m * Math.pow(1 - m, i);
        }
        assertThat(window.average(6 * SECOND)).isCloseTo(expected, within(1e-12));
        assertThat(window.average(16 * SECOND)).isZero();
    }

    @Test
    void aWeightedWindowOfFiveSecondsIsNearItsNewest() {
        assertThat(filled(Aggregation.WEIGHTED_EXPONENTIAL, 0, 1, 2, 3, 4, 5, 6).average(5 * SECOND))
                .isCloseTo(5.812, within(5e-4));
    }

    @Test
    void aLongerWindowKeepsWhatItHas() {
        for (long t : ORIGINS) {
            TimeWindow window = filled(Aggregation.LINEAR, t, 1, 2, 3, 4, 5, 6);
            long now = t + 5 * SECOND;
            assertThat(window.average(now)).isEqualTo(4);
            window.resize(now, 10);
            assertThat(window.seconds()).isEqualTo(10);
            assertThat(window.sum(now)).isEqualTo(20);
            assertThat(window.average(now)).isEqualTo(4);
            now += SECOND;
            window.record(now, 7);
            assertThat(window.average(now)).isEqualTo(4.5);
            window.resize(now, 4);
            assertThat(window.sum(now)).isEqualTo(22);
            assertThat(window.average(now)).isEqualTo(5.5);
            window.resize(now, 4);
            assertThat(window.average(now)).isEqualTo(5.5);
        }
    }

    @Test
    void aYoungWindowStaysYoungWhenItGrows() {
        TimeWindow window = linear(60);
        window.record(0, 8);
        window.resize(0, 120);
        assertThat(window.average(0)).isEqualTo(8);
    }

    @Test
    void anEmptyWindowIsNewWhenItsLengthChanges() {
        TimeWindow window = filled(Aggregation.LINEAR, 0, 1, 2, 3, 4, 5);
        window.resize(100 * SECOND, 10);
        assertThat(window.isEmpty(100 * SECOND)).isTrue();
        window.record(101 * SECOND, 3);
        assertThat(window.average(101 * SECOND)).isEqualTo(3);
    }

    @Test
    void invalidMeasurementsAreIgnored() {
        TimeWindow window = linear(5);
        window.record(0, Double.NaN);
        window.record(0, -1);
        window.record(0, Double.POSITIVE_INFINITY);
        assertThat(window.isEmpty(0)).isTrue();
    }
}
