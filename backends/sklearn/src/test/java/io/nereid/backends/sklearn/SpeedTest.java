// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.sklearn;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.BackendModel;
import io.nereid.backend.Invocation;
import io.nereid.base.Clock;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.file.Path;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a row costs, with a generous limit: it finds a mistake of order, not of per cent. */
class SpeedTest {
    private static final int RUNS = 20_000;

    @TempDir
    Path directory;

    @Test
    void oneRowOfALinearPipelineTakesMicroseconds() {
        for (String name : List.of("pipeline", "grid", "logistic_three")) {
            try (BackendModel model = Models.load(Models.of(directory, name));
                    Invocation invocation = model.newInvocation();
                    Tensor row = Models.doubles("input-0", Shape.of(1, 4), 0.5, 3, 1.1, -60)) {
                long best = Long.MAX_VALUE;
                for (int round = 0; round < 5; round++) {
                    long from = Clock.system().nanos();
                    for (int i = 0; i < RUNS; i++) {
                        Tensor.closeAll(invocation.run(List.of(row), List.of("predict")));
                    }
                    best = Math.min(best, (Clock.system().nanos() - from) / RUNS);
                }
                assertThat(best).as(name + ", nanoseconds a row").isLessThan(5_000);
            }
        }
    }
}
