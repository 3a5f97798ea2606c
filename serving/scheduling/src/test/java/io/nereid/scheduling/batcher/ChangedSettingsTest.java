// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.scheduling.FakeJob;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Puppet;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ManualTime;
import io.nereid.spi.config.BatchSizePolicy;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.QueuePolicy;
import io.nereid.spi.config.QueuePolicy.TimeoutAction;
import io.nereid.spi.config.parameters.LatencyObjective;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

/** Settings that change while jobs are queued. */
class ChangedSettingsTest {
    private final ManualTime time = new ManualTime();
    private final DeviceExecutor pool = new DeviceExecutor("test", 0, time, time);
    private final Puppet puppet = new Puppet();

    private static ModelConfig config(QueuePolicy queue, long delay, int levels, Integer... preferred) {
        return ModelConfig.builder("m")
                .maxBatchSize(4)
                .queue(queue)
                .batching(new DynamicBatching(
                        List.of(preferred), Duration.ofNanos(delay), false, levels, levels == 0 ? 0 : 2, Map.of()))
                .instances(1)
                .build();
    }

    private static ModelConfig config(long delay, int levels, Integer... preferred) {
        return config(QueuePolicy.DEFAULT, delay, levels, preferred);
    }

    private DynamicBatcher batcher(ModelConfig config) {
        return new DynamicBatcher(config, puppet, pool, new SchedulerOptions(100, InlinePolicy.NEVER));
    }

    private void runAll() {
        while (pool.runNext()) {
            assertThat(puppet.ran).hasSizeLessThan(1_000);
        }
        assertThat(puppet.trouble).isEmpty();
    }

    @Test
    void aShorterDelayReleasesTheBatchThatWaits() {
        DynamicBatcher batcher = batcher(config(1_000_000, 0));
        batcher.submit(FakeJob.of(1));
        batcher.submit(FakeJob.of(2));
        runAll();
        assertThat(puppet.ran).isEmpty();
        assertThat(batcher.configure(config(100, 0))).isTrue();
        time.advance(99);
        runAll();
        assertThat(puppet.ran).isEmpty();
        time.advance(1);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1, 2));
        batcher.submit(FakeJob.of(3));
        assertThat(batcher.configure(config(0, 0))).isTrue();
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1, 2), List.of(3));
    }

    @Test
    void aLongerDelayHoldsTheNextBatch() {
        DynamicBatcher batcher = batcher(config(0, 0));
        assertThat(batcher.configure(config(100, 0))).isTrue();
        batcher.submit(FakeJob.of(1));
        runAll();
        assertThat(puppet.ran).isEmpty();
        time.advance(100);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1));
    }

    @Test
    void aPreferredSizeThatIsReachedClosesTheBatch() {
        DynamicBatcher batcher = batcher(config(1_000_000, 0));
        batcher.submit(FakeJob.of(1));
        batcher.submit(FakeJob.of(2));
        batcher.submit(FakeJob.of(3));
        assertThat(batcher.configure(config(1_000_000, 0, 2))).isTrue();
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1, 2));
        assertThat(batcher.configure(config(0, 0))).isTrue();
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1, 2), List.of(3));
    }

    @Test
    void queuedJobsGetTheirPriority() {
        DynamicBatcher batcher = batcher(config(1_000_000, 0));
        for (int i = 1; i <= 3; i++) {
            batcher.submit(FakeJob.of(i).priority(4 - i));
        }
        assertThat(batcher.configure(config(1_000_000, 3, 1))).isTrue();
        assertThat(batcher.queued()).isEqualTo(3);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(3), List.of(2), List.of(1));
    }

    @Test
    void queuedJobsGetTheirTimeout() {
        DynamicBatcher batcher = batcher(config(1_000_000, 0));
        FakeJob old = FakeJob.of(1);
        batcher.submit(old);
        time.advance(60);
        FakeJob young = FakeJob.of(2);
        batcher.submit(young);
        assertThat(batcher.configure(
                        config(new QueuePolicy(0, Duration.ofNanos(50), true, TimeoutAction.REJECT), 1_000_000, 0)))
                .isTrue();
        assertThat(old.code).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(young.ends.get()).isZero();
        assertThat(batcher.configure(config(0, 0))).isTrue();
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(2));
    }

    @Test
    void aFullQueueRefusesOnlyNewJobs() {
        DynamicBatcher batcher = batcher(config(1_000_000, 0));
        List<FakeJob> jobs = new ArrayList<>();
        for (int i = 1; i <= 3; i++) {
            jobs.add(FakeJob.of(i));
            batcher.submit(jobs.get(i - 1));
        }
        assertThat(batcher.configure(config(new QueuePolicy(2, Duration.ZERO, true), 1_000_000, 0)))
                .isTrue();
        assertThatThrownBy(() -> batcher.submit(FakeJob.of(4))).hasMessageContaining("Exceeds maximum queue size");
        assertThat(batcher.configure(config(0, 0))).isTrue();
        runAll();
        assertThat(jobs).allMatch(job -> job.ends.get() == 1 && job.code == ErrorCode.OK);
    }

    @Test
    void whatCannotChangeIsRefusedAndChangesNothing() {
        DynamicBatcher batcher = batcher(config(0, 0));
        ModelConfig ordered = config(0, 0).toBuilder()
                .batching(new DynamicBatching(List.of(), Duration.ofNanos(100), true))
                .build();
        assertThat(batcher.configure(ordered)).isFalse();
        assertThat(batcher.configure(config(100, 0).toBuilder().batching(null).build()))
                .isFalse();
        assertThat(batcher.configure(maximum(0, 100, 0)))
                .as("no batch dimension")
                .isFalse();
        batcher.submit(FakeJob.of(1));
        runAll();
        assertThat(puppet.ran).as("without the delay that was refused").containsExactly(List.of(1));
    }

    private static ModelConfig maximum(int rows, long delay, int levels, Integer... preferred) {
        return config(delay, levels, preferred).toBuilder().maxBatchSize(rows).build();
    }

    @Test
    void aLargerMaximumTakesMoreJobsThatWait() {
        for (int before : new int[] {1, 4}) {
            puppet.ran.clear();
            DynamicBatcher batcher = batcher(maximum(before, 0, 0));
            for (int i = 1; i <= 9; i++) {
                batcher.submit(FakeJob.of(i));
            }
            assertThat(batcher.configure(maximum(8, 0, 0))).isTrue();
            runAll();
            assertThat(puppet.ran).containsExactly(List.of(1, 2, 3, 4, 5, 6, 7, 8), List.of(9));
        }
    }

    @Test
    void aJobThatIsLargerThanTheNewMaximumRunsAlone() {
        DynamicBatcher batcher = batcher(maximum(8, 0, 0));
        batcher.submit(FakeJob.of(1));
        batcher.submit(FakeJob.rows(2, 8));
        batcher.submit(FakeJob.of(3));
        batcher.submit(FakeJob.of(4));
        batcher.submit(FakeJob.of(5));
        assertThat(batcher.configure(maximum(2, 0, 0))).isTrue();
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1), List.of(2), List.of(3, 4), List.of(5));
    }

    @Test
    void withAMaximumOfOneEveryJobRunsAloneAndWithoutDelay() {
        DynamicBatcher batcher = batcher(maximum(4, 1_000_000, 0, 2));
        batcher.submit(FakeJob.of(1));
        runAll();
        assertThat(puppet.ran).isEmpty();
        assertThat(batcher.configure(maximum(1, 1_000_000, 0))).isTrue();
        batcher.submit(FakeJob.of(2));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1), List.of(2));
        assertThat(batcher.configure(maximum(4, 1_000_000, 0, 2))).isTrue();
        batcher.submit(FakeJob.of(3));
        runAll();
        assertThat(puppet.ran).as("it waits again").hasSize(2);
        batcher.submit(FakeJob.of(4));
        runAll();
        assertThat(puppet.ran).contains(List.of(3, 4));
    }

    @Test
    void aLargerPreferredSizeComesWithTheMaximumThatAllowsIt() {
        DynamicBatcher batcher = batcher(maximum(4, 1_000_000, 0));
        for (int i = 1; i <= 7; i++) {
            batcher.submit(FakeJob.of(i));
        }
        assertThat(batcher.configure(maximum(16, 1_000_000, 0, 6))).isTrue();
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1, 2, 3, 4, 5, 6));
    }

    @Test
    void aModelWithoutBatchingTakesAnotherMaximumAndRunsEveryJobAlone() {
        ModelConfig config = maximum(4, 0, 0).toBuilder().batching(null).build();
        DynamicBatcher batcher = batcher(config);
        assertThat(batcher.configure(config.toBuilder().maxBatchSize(8).build()))
                .isTrue();
        assertThat(batcher.configure(config.toBuilder().maxBatchSize(0).build()))
                .isFalse();
        batcher.submit(FakeJob.rows(1, 8));
        batcher.submit(FakeJob.rows(2, 1));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1), List.of(2));
    }

    @Test
    void withSizesThatRequestsAreSplitOrPaddedToTheMaximumStays() {
        for (BatchSizePolicy sizes : List.of(
                new BatchSizePolicy(List.of(), false, 16, 0), new BatchSizePolicy(List.of(2, 4), false, 0, 0))) {
            ModelConfig config = maximum(4, 0, 0);
            config = config.toBuilder()
                    .batching(config.batching().withBatchSizePolicy(sizes))
                    .build();
            DynamicBatcher batcher = batcher(config);
            assertThat(batcher.configure(config.toBuilder().maxBatchSize(8).build()))
                    .isFalse();
            assertThat(batcher.configure(config)).isTrue();
        }
    }

    @Test
    void aLatencyObjectiveKeepsWhatItHasLearntUnderAnotherMaximum() {
        ModelConfig config = maximum(4, 0, 0).toBuilder()
                .parameters(Map.of(LatencyObjective.PARAMETER, "p99=20ms"))
                .build();
        DynamicBatcher batcher = batcher(config);
        // A run of n rows takes n milliseconds: at most a few rows are in time.
        for (int i = 0; i < 40; i++) {
            int rows = 1 + i % 4;
            batcher.submit(FakeJob.rows(i, rows));
            puppet.during = () -> time.advance(rows * 1_000_000L);
            runAll();
        }
        assertThat(batcher.objective().maxRows()).isEqualTo(4);
        assertThat(batcher.configure(config.toBuilder().maxBatchSize(1000).build()))
                .isTrue();
        assertThat(batcher.objective().maxRows())
                .as("as many as are in time, by the runs that were measured")
                .isBetween(5, 20);
        assertThat(batcher.configure(config.toBuilder().maxBatchSize(2).build()))
                .isTrue();
        assertThat(batcher.objective().maxRows()).isEqualTo(2);
    }

    @Test
    void noJobIsLostOrRunTwiceWhateverChanges() {
        Random random = new Random(7);
        DynamicBatcher batcher = batcher(config(50, 0));
        List<FakeJob> jobs = new ArrayList<>();
        for (int i = 0; i < 2000; i++) {
            switch (random.nextInt(4)) {
                case 0 -> time.advance(random.nextInt(40));
                case 1 ->
                    assertThat(batcher.configure(maximum(
                                    1 + random.nextInt(8),
                                    random.nextInt(100),
                                    random.nextInt(2) * 3,
                                    1 + random.nextInt(4))))
                            .isTrue();
                default -> {
                    FakeJob job = FakeJob.rows(i, 1 + random.nextInt(3)).priority(random.nextInt(4));
                    jobs.add(job);
                    batcher.submit(job);
                }
            }
            if (random.nextBoolean()) {
                pool.runNext();
            }
        }
        batcher.close();
        while (pool.runNext()) {
            assertThat(puppet.trouble).isEmpty();
        }
        assertThat(batcher.drained().toCompletableFuture()).isDone();
        assertThat(jobs).hasSizeGreaterThan(500).allMatch(job -> job.ends.get() == 1 && job.code == ErrorCode.OK);
    }
}
