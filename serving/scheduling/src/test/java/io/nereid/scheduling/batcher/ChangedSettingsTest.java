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
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.QueuePolicy;
import io.nereid.spi.config.QueuePolicy.TimeoutAction;
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
        assertThat(batcher.configure(config(100, 0).toBuilder().maxBatchSize(8).build()))
                .isFalse();
        batcher.submit(FakeJob.of(1));
        runAll();
        assertThat(puppet.ran).as("without the delay that was refused").containsExactly(List.of(1));
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
                    assertThat(batcher.configure(
                                    config(random.nextInt(100), random.nextInt(2) * 3, 1 + random.nextInt(4))))
                            .isTrue();
                default -> {
                    FakeJob job = FakeJob.of(i).priority(random.nextInt(4));
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
