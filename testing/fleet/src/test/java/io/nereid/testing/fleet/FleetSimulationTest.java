// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.testing.fleet;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.List;
import org.junit.jupiter.api.Test;

/** The short form: 2,000 models on 20 pods; {@code testing/fleet/run.sh} has the long one. */
final class FleetSimulationTest {
    @Test
    void placementKeepsItsPromisesBesideTheOtherRules() {
        FleetScenario scenario = FleetScenario.small();
        List<FleetOutcome> outcomes = FleetStrategies.ALL.stream()
                .map(strategy -> FleetStrategies.run(scenario, strategy))
                .toList();
        FleetOutcome nereid = outcomes.get(0);
        FleetOutcome modelmesh = outcomes.get(1);
        FleetOutcome modulo = outcomes.get(2);
        String table = FleetMain.table(scenario, outcomes);

        assertThat(outcomes).extracting(o -> o.requests).as("the same requests").containsOnly(nereid.requests);
        assertThat(nereid.refusedShare()).as(table).isLessThan(0.001);
        assertThat(nereid.fullest).as(table).isLessThanOrEqualTo(1);
        assertThat(nereid.hitRate()).as(table).isGreaterThan(modulo.hitRate());
        assertThat(nereid.hitRate()).as(table).isGreaterThan(modelmesh.hitRate() - 0.002);
        assertThat(nereid.latency.millis(0.99)).as(table).isLessThan(modelmesh.latency.millis(0.99));
        assertThat(nereid.latency.millis(0.99)).as(table).isLessThan(modulo.latency.millis(0.99));
        assertThat(nereid.meanLoadBalance(scenario.warmup()))
                .as(table)
                .isLessThan(modulo.meanLoadBalance(scenario.warmup()));
        // The lost pod had a twentieth of the models.
        assertThat(nereid.moves(scenario.loseAt(), 120)).as(table).isLessThan(scenario.models() / 10);
    }

    @Test
    void theSameSeedGivesTheSameOutcome() {
        FleetScenario scenario = FleetScenario.small().seeded(11);
        FleetOutcome first = FleetStrategies.run(scenario, FleetStrategies.ALL.get(0));
        FleetOutcome second = FleetStrategies.run(scenario, FleetStrategies.ALL.get(0));
        assertThat(first.windows).isEqualTo(second.windows);
        assertThat(first.loads).isEqualTo(second.loads);
    }
}
