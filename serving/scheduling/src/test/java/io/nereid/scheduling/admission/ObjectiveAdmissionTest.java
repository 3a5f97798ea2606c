// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.admission;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.ErrorCode;
import io.nereid.scheduling.FakeJob;
import io.nereid.scheduling.objective.ObjectiveStatus;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** A batcher with one instance and a latency objective, under loads in virtual time. */
class ObjectiveAdmissionTest {
    private static final double OBJECTIVE = 0.04;
    private static final double CAPACITY = 8 / 0.010;

    private static ModelConfig config(Duration delay, String objective) {
        return ModelConfig.builder("m")
                .instances(1)
                .maxBatchSize(8)
                .batching(new DynamicBatching(List.of(), delay, false))
                .parameters(objective.isEmpty() ? Map.of() : Map.of("slo", objective))
                .build();
    }

    private static LoadSimulation load(ModelConfig config) {
        return new LoadSimulation(1, 30, config, new AdmissionControl(null)).service(batch -> 0.002 + 0.001 * batch);
    }

    private static ObjectiveStatus status(LoadSimulation load) {
        ObjectiveStatus status = load.batcher.objective();
        assertThat(status).isNotNull();
        return status;
    }

    @Test
    void whatWouldMissTheObjectiveIsRefusedAtOnceWithATimeToRetry() {
        LoadSimulation load = load(config(Duration.ZERO, "p99=40ms")).open(1.5 * CAPACITY);
        load.run();
        assertThat(load.percentile(99, true, 2, 30)).isLessThanOrEqualTo(1.1 * OBJECTIVE);
        assertThat(load.goodput(2, 30)).isGreaterThanOrEqualTo(0.85 * CAPACITY);
        assertThat(load.ended).filteredOn(e -> !e.served()).isNotEmpty().allSatisfy(e -> {
            assertThat(e.job().code).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(e.job().error).isNotNull();
            assertThat(e.job().error.retryAfter()).isBetween(Duration.ofSeconds(1), Duration.ofSeconds(60));
        });
        assertThat(status(load).refused()).isEqualTo(load.refused());
    }

    @Test
    void withoutAnObjectiveEverythingWaits() {
        LoadSimulation load = load(config(Duration.ZERO, "")).open(1.5 * CAPACITY);
        load.run();
        assertThat(load.batcher.objective()).isNull();
        assertThat(load.refused()).isZero();
        assertThat(load.percentile(99, true, 2, 30)).isGreaterThan(5);
    }

    @Test
    void requestsThatHaveWaitedTooLongAreRefusedBeforeTheyRun() {
        LoadSimulation load = load(config(Duration.ZERO, "p99=40ms")).open(0.3 * CAPACITY);
        load.service(batch -> load.now() > 10 && load.now() < 10.5 ? 1 : 0.002 + 0.001 * batch)
                .run();
        assertThat(load.ended)
                .filteredOn(e -> !e.served() && e.arrived() > 10 && e.arrived() < 10.5)
                .isNotEmpty()
                .allMatch(e -> e.took() < OBJECTIVE);
    }

    @Test
    void withSlackBatchesWaitUnlessADelayIsConfigured() {
        LoadSimulation load = load(config(Duration.ZERO, "p99=40ms")).open(0.1 * CAPACITY);
        load.step = 500_000;
        load.run();
        assertThat(load.percentile(99, true, 2, 30)).isLessThanOrEqualTo(1.1 * OBJECTIVE);
        LoadSimulation fixed = load(config(Duration.ofNanos(1_000), "p99=40ms")).open(0.1 * CAPACITY);
        fixed.step = 500_000;
        fixed.run();
        assertThat(status(fixed).delayNanos()).as("the configured delay stays").isZero();
        assertThat(load.batcher.batches()).isLessThan(fixed.batcher.batches() * 9 / 10);
    }

    @Test
    void batchesAreAsLargeAsTheObjectiveAllows() {
        LoadSimulation load = load(config(Duration.ZERO, "p99=12ms")).open(CAPACITY);
        load.run();
        // Two runs fit into the planned time of about 11 ms.
        assertThat(status(load).maxRows()).isBetween(2, 4);
        assertThat(load.percentile(99, true, 2, 30)).isLessThanOrEqualTo(1.1 * 0.012);
    }

    @Test
    void anObjectiveBeginsAndEndsWhileTheModelServes() {
        LoadSimulation load = load(config(Duration.ZERO, "")).open(1.5 * CAPACITY);
        List<Boolean> changed = new ArrayList<>();
        load.at(2, () -> changed.add(load.batcher.configure(config(Duration.ZERO, "p99=40ms"))));
        load.at(20, () -> changed.add(load.batcher.configure(config(Duration.ZERO, ""))));
        load.run();
        assertThat(changed).containsExactly(true, true);
        assertThat(load.ended).filteredOn(e -> e.arrived() < 2).allMatch(LoadSimulation.Ended::served);
        assertThat(load.percentile(99, true, 8, 20)).isLessThanOrEqualTo(1.1 * OBJECTIVE);
        assertThat(load.ended).filteredOn(e -> e.arrived() > 20).allMatch(LoadSimulation.Ended::served);
        assertThat(load.batcher.objective()).isNull();
    }

    @Test
    void aRequestWithATimeoutOfItsOwnIsNotRefused() {
        LoadSimulation load = load(config(Duration.ZERO, "p99=40ms")).open(1.5 * CAPACITY);
        FakeJob job = FakeJob.of(-1).timeout(60_000_000_000L);
        load.at(10, () -> load.submit(job, null));
        load.run();
        assertThat(job.code).isEqualTo(ErrorCode.OK);
    }
}
