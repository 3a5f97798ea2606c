// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;

class RunTimeEstimatorTest {
    private static final long SHORT = 5_000;

    private final RunTimeEstimator runs = new RunTimeEstimator();

    @Test
    void shortRunsAreTinyWhenEnoughWereMeasured() {
        run(RunTimeEstimator.RUNS_BEFORE_JUDGEMENT - 1, SHORT);
        assertThat(runs.tiny()).isFalse();
        run(1, SHORT);
        assertThat(runs.tiny()).isTrue();
    }

    @Test
    void runsOfAHundredMicrosecondsAreNotTiny() {
        run(1_000, 100_000);
        assertThat(runs.tiny()).isFalse();
    }

    @Test
    void pausesOfTheMachineChangeNothing() {
        run(100, SHORT);
        for (int i = 0; i < 50; i++) {
            run(1, TimeUnit.MILLISECONDS.toNanos(2));
            assertThat(runs.tiny()).as("after pause %s", i).isTrue();
            run(1_000, SHORT);
        }
    }

    @Test
    void aModelWithRunsOfMillisecondsAmongShortOnesIsNotTiny() {
        run(100, SHORT);
        for (int i = 0; i < 50; i++) {
            run(1, TimeUnit.MILLISECONDS.toNanos(20));
            run(99, SHORT);
        }
        assertThat(runs.tiny()).isFalse();
        run(5_000, SHORT);
        assertThat(runs.tiny()).as("the long runs are long ago").isTrue();
    }

    @Test
    void aRunOfSecondsCountsForThousandsOfRuns() {
        run(100, SHORT);
        run(1, TimeUnit.SECONDS.toNanos(5));
        run(4_000, SHORT);
        assertThat(runs.tiny()).isFalse();
        run(4_000, SHORT);
        assertThat(runs.tiny()).isTrue();
    }

    private void run(int count, long nanos) {
        for (int i = 0; i < count; i++) {
            runs.ran(nanos);
        }
    }
}
