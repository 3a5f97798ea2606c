// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import java.io.IOException;
import java.util.List;

/** Measures one scenario: one or more rows of the results table. Implementations are stateless or immutable. */
@FunctionalInterface
public interface Scenario {
    /** Runs the scenario. */
    List<BenchmarkResult> measure(BenchmarkSettings settings) throws IOException, InterruptedException;

    /** Whether the program fails when a target of this scenario is missed. */
    default boolean required() {
        return false;
    }
}
