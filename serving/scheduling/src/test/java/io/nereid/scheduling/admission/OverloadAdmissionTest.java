// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.admission;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Loads of many shapes from fixed seeds, on a batcher with one instance and a target of one second. */
class OverloadAdmissionTest {
    private static final long[] SEEDS = {1, 2, 3};

    // ---- overload ----

    @ParameterizedTest
    @CsvSource({"1000, 1.5", "1000, 5", "100, 2", "100, 3", "100, 5", "50, 5", "30, 3"})
    void anOverloadFromTheFirstMomentCostsTheExcessOnly(double capacity, double ratio) {
        for (long seed : SEEDS) {
            LoadSimulation load = LoadSimulation.of(seed, 60)
                    .service(1 / capacity)
                    .open(ratio * capacity)
                    .run();
            assertThat(load.goodput(0, 60) / capacity)
                    .as("seed %s: goodput", seed)
                    .isGreaterThanOrEqualTo(0.95);
            assertThat(load.percentile(99, true, 0, 60))
                    .as("seed %s: p99 of the served", seed)
                    .isLessThanOrEqualTo(1);
            assertThat(load.percentile(95, false, 0, 60))
                    .as("seed %s: most are refused at once", seed)
                    .isZero();
        }
    }

    @ParameterizedTest
    @CsvSource({"100, 1.2", "100, 20", "10, 3", "10, 5", "10, 20", "2, 5"})
    void anyOverloadHasAnEndAfterTheQueueHasGrown(double capacity, double ratio) {
        for (long seed : SEEDS) {
            LoadSimulation load = LoadSimulation.of(seed, 60)
                    .service(1 / capacity)
                    .open(ratio * capacity)
                    .run();
            assertThat(load.goodput(20, 60) / capacity)
                    .as("seed %s: goodput", seed)
                    .isGreaterThanOrEqualTo(0.95);
            assertThat(load.percentile(99, true, 20, 60))
                    .as("seed %s: p99 of the served, after the begin", seed)
                    .isLessThanOrEqualTo(Math.max(1, 2.6 / capacity));
        }
    }

    @Test
    void runsOfRandomTimesAreStillServedInTime() {
        for (long seed : SEEDS) {
            LoadSimulation load = LoadSimulation.of(seed, 60);
            load.service(batch -> -0.01 * Math.log(1 - load.random.nextDouble()))
                    .open(500)
                    .run();
            // The capacity is random as well.
            assertThat(load.goodput(0, 60)).as("seed %s", seed).isGreaterThanOrEqualTo(90);
            assertThat(load.percentile(99, true, 3, 60)).as("seed %s", seed).isLessThanOrEqualTo(1);
        }
    }

    @Test
    void batchesStayFullUnderOverload() {
        ModelConfig config = ModelConfig.builder("m")
                .instances(1)
                .maxBatchSize(8)
                .batching(DynamicBatching.EAGER)
                .build();
        // Longer than the target allows for a queue of a whole batch at half of it, and shorter.
        for (double run : new double[] {0.05, 0.45, 0.8}) {
            LoadSimulation load = new LoadSimulation(1, 120, config, AdmissionControl.overload(Duration.ofSeconds(1)));
            load.service(batch -> run).open(5 * 8 / run).run();
            assertThat(load.goodput(30, 120) * run / 8)
                    .as("runs of %s s: share of the capacity", run)
                    .isGreaterThanOrEqualTo(0.95);
            assertThat(load.percentile(99, true, 60, 120))
                    .as("runs of %s s: p99", run)
                    .isLessThanOrEqualTo(Math.max(1, 2.6 * run));
        }
    }

    @Test
    void slowerRunsWhileItIsOverloadedKeepTheDelayBounded() {
        LoadSimulation load = LoadSimulation.of(1, 90);
        load.service(batch -> load.now() < 30 ? 0.01 : load.now() < 60 ? 0.05 : 0.01)
                .open(500)
                .run();
        assertThat(load.goodput(35, 60)).isGreaterThanOrEqualTo(19);
        assertThat(load.goodput(65, 90)).isGreaterThanOrEqualTo(95);
        assertThat(load.percentile(99, true, 0, 90)).isLessThanOrEqualTo(1);
    }

    @Test
    void nothingIsRefusedAnyMoreWhenTheOverloadIsOver() {
        LoadSimulation load = LoadSimulation.of(1, 80);
        load.open(t -> t < 20 ? 500 : 80).run();
        assertThat(load.ended).filteredOn(e -> !e.served() && e.arrived() > 21).isEmpty();
        assertThat(load.goodput(30, 80)).isBetween(75.0, 85.0);
    }

    // ---- no overload ----

    @ParameterizedTest
    @ValueSource(ints = {10, 100, 1000, 5000})
    void aFixedNumberOfClientsIsNeverRefused(int clients) {
        for (double run : new double[] {0.1, 0.01}) {
            for (double startWithin : new double[] {0, 0.2, 0.5, 1}) {
                for (double think : new double[] {0, 1, 10, 60}) {
                    LoadSimulation load = LoadSimulation.of(clients, 120)
                            .service(run)
                            .closed(clients, startWithin, think)
                            .run();
                    assertThat(load.refused())
                            .as(
                                    "%s clients, runs of %s s, begin within %s s, think for %s s",
                                    clients, run, startWithin, think)
                            .isZero();
                }
            }
        }
    }

    @Test
    void aThousandClientsOfASlowModelMayTakeThreeSecondsToBegin() {
        for (long seed : SEEDS) {
            for (double startWithin : new double[] {1.5, 2, 3}) {
                LoadSimulation load = LoadSimulation.of(seed, 150)
                        .service(0.1)
                        .closed(1000, startWithin, 0)
                        .run();
                assertThat(load.refused())
                        .as("seed %s, %s s", seed, startWithin)
                        .isZero();
            }
        }
    }

    @Test
    void clientsOfABatchedModelAreNeverRefused() {
        ModelConfig config = ModelConfig.builder("m")
                .instances(1)
                .maxBatchSize(32)
                .batching(DynamicBatching.EAGER)
                .build();
        for (int clients : new int[] {40, 300, 3000}) {
            LoadSimulation load = new LoadSimulation(7, 200, config, AdmissionControl.overload(Duration.ofSeconds(1)))
                    .service(batch -> 0.1 + 0.01 * batch)
                    .closed(clients, 0.3, 0)
                    .run();
            assertThat(load.refused()).as("%s clients", clients).isZero();
        }
    }

    @Test
    void aBurstIsServed() {
        LoadSimulation load = LoadSimulation.of(1, 60)
                .burst(1, 500)
                .burst(20, 900)
                .open(t -> 30)
                .run();
        assertThat(load.refused()).isZero();
        assertThat(load.longest).isGreaterThan(800);
    }

    @Test
    void repeatedBurstsBelowTheCapacityAreServed() {
        LoadSimulation load = LoadSimulation.of(1, 120);
        for (int i = 0; i < 20; i++) {
            load.burst(6 * i, 500);
        }
        assertThat(load.run().refused()).isZero();
    }

    @ParameterizedTest
    @ValueSource(doubles = {0.5, 0.8, 0.9, 0.95})
    void randomArrivalsBelowTheCapacityAreServed(double ratio) {
        for (long seed : SEEDS) {
            LoadSimulation load = LoadSimulation.of(seed, 300).open(100 * ratio).run();
            assertThat(load.refused()).as("seed %s", seed).isZero();
        }
    }

    @Test
    void aSlowFirstRunIsNotAnOverload() {
        for (double first : new double[] {1, 5, 20}) {
            LoadSimulation load = LoadSimulation.of(1, 90);
            load.service(batch -> load.now() < first ? first : 0.01).open(60).run();
            assertThat(load.refused()).as("a first run of %s s", first).isZero();
        }
    }

    @Test
    void aPauseOfTheModelIsNotAnOverload() {
        LoadSimulation load = LoadSimulation.of(1, 90);
        load.service(batch -> load.now() > 10 && load.now() < 14 ? 4 : 0.01)
                .open(60)
                .run();
        assertThat(load.refused()).isZero();
    }
}
