// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import java.util.List;
import org.junit.jupiter.api.Test;

/** What a row costs without its tensors, with a generous limit: it finds a mistake of order, not of per cent. */
class SpeedTest {
    private static final int RUNS = 20_000;

    @Test
    void oneRowOfALinearPipelineTakesMicroseconds() {
        for (String name : List.of("pipeline", "grid", "logistic_three")) {
            Estimator estimator = Fixtures.load(
                    Fixtures.NEW,
                    Fixtures.expected(Fixtures.NEW).get(name).get("file").asText());
            Table row = new Table(1, 4, new double[] {0.5, 3, 1.1, -60});
            long best = Long.MAX_VALUE;
            double sum = 0;
            for (int round = 0; round < 10; round++) {
                long from = Clock.system().nanos();
                for (int i = 0; i < RUNS; i++) {
                    sum += estimator.checked(Method.PREDICT, row).values()[0];
                }
                best = Math.min(best, (Clock.system().nanos() - from) / RUNS);
            }
            assertThat(sum).isGreaterThanOrEqualTo(0);
            assertThat(best).as(name + ", nanoseconds a row").isLessThan(5_000);
        }
    }
}
