// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.fleet;

import io.nereid.control.placement.PlacementSettings;
import java.util.List;
import java.util.function.BiFunction;

/** Runs a scenario with each strategy; each has the same models, sizes and requests. Stateless. */
final class FleetStrategies {
    private FleetStrategies() {}

    static final List<BiFunction<FleetScenario, FleetWorkload, FleetStrategy>> ALL = List.of(
            (scenario, workload) -> new NereidStrategy(scenario, workload, PlacementSettings.DEFAULT),
            ModelMeshStrategy::new,
            ModuloStrategy::new);

    static FleetOutcome run(FleetScenario scenario, BiFunction<FleetScenario, FleetWorkload, FleetStrategy> strategy) {
        FleetWorkload workload = new FleetWorkload(scenario);
        return new FleetSimulation(scenario, workload, strategy.apply(scenario, workload)).run();
    }
}
