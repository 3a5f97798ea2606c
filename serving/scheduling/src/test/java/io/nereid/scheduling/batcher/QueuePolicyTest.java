// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.FakeJob;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Puppet;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ManualTime;
import io.nereid.scheduling.factory.SchedulerFactory;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.QueuePolicy;
import io.nereid.spi.config.QueuePolicy.TimeoutAction;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class QueuePolicyTest {
    private static final QueuePolicy PLAIN = new QueuePolicy(0, Duration.ZERO, false);

    private final ManualTime time = new ManualTime();
    private final DeviceExecutor pool = new DeviceExecutor("test", 0, time, time);
    private final Puppet puppet = new Puppet();

    private Scheduler batcher(int maxBatch, QueuePolicy queue, DynamicBatching batching) {
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(maxBatch)
                .queue(queue)
                .batching(batching)
                .instances(1)
                .build();
        return SchedulerFactory.create(config, puppet, pool, new SchedulerOptions(100, InlinePolicy.NEVER));
    }

    private Scheduler levels(
            int maxBatch, long delay, int levels, int usual, QueuePolicy queue, Map<Long, QueuePolicy> others) {
        return batcher(
                maxBatch, queue, new DynamicBatching(List.of(), Duration.ofNanos(delay), false, levels, usual, others));
    }

    private Scheduler policy(QueuePolicy queue) {
        return batcher(1, queue, DynamicBatching.EAGER);
    }

    private static QueuePolicy timeout(long nanos, boolean override, TimeoutAction action) {
        return new QueuePolicy(0, Duration.ofNanos(nanos), override, action);
    }

    private void runAll() {
        while (pool.runNext()) {
            assertThat(puppet.ran).hasSizeLessThan(1_000);
        }
        assertThat(puppet.trouble).isEmpty();
    }

    private static void assertFailed(FakeJob job, ErrorCode code, String text) {
        assertThat(job.code).as("%s", job).isEqualTo(code);
        assertThat(job.error).hasMessage("[request id: r" + job.number + "] " + text);
        assertThat(job.ends.get()).isEqualTo(1);
        assertThat(job.hasAction()).isFalse();
    }

    @Test
    void servesTheMostUrgentLevelFirstAndEachInOrder() {
        Scheduler s = levels(1, 0, 3, 2, PLAIN, Map.of());
        s.submit(FakeJob.of(1).priority(3));
        s.submit(FakeJob.of(2).priority(2));
        s.submit(FakeJob.of(3).priority(1));
        s.submit(FakeJob.of(4).priority(3));
        s.submit(FakeJob.of(5).priority(1));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(3), List.of(5), List.of(2), List.of(1), List.of(4));
    }

    @Test
    void putsJobsOfNoOrAnUnknownPriorityOnTheDefaultLevel() {
        Scheduler s = levels(1, 0, 3, 2, PLAIN, Map.of());
        s.submit(FakeJob.of(1).priority(3));
        s.submit(FakeJob.of(2).priority(0));
        s.submit(FakeJob.of(3).priority(4));
        s.submit(FakeJob.of(4).priority(-1));
        s.submit(FakeJob.of(5).priority(1));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(5), List.of(2), List.of(3), List.of(4), List.of(1));
    }

    @Test
    void heedsNoPriorityWithoutLevels() {
        Scheduler s = policy(PLAIN);
        s.submit(FakeJob.of(1).priority(9));
        s.submit(FakeJob.of(2).priority(1));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1), List.of(2));
    }

    @Test
    void letsABatchSpanLevels() {
        Scheduler s = levels(4, 0, 2, 2, PLAIN, Map.of());
        s.submit(FakeJob.of(1));
        s.submit(FakeJob.of(2));
        s.submit(FakeJob.of(3).priority(1));
        s.submit(FakeJob.of(4));
        s.submit(FakeJob.of(5));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(3, 1, 2, 4), List.of(5));
    }

    @Test
    void letsAnUrgentJobInFrontOfABatchThatIsAlreadyForming() {
        Scheduler s = levels(3, 100, 2, 2, PLAIN, Map.of());
        s.submit(FakeJob.of(1));
        s.submit(FakeJob.of(2));
        s.submit(FakeJob.of(3).priority(1));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(3, 1, 2));
    }

    @Test
    void countsTheDelayFromTheOldestJobOfTheBatchWhateverItsLevel() {
        Scheduler s = levels(8, 100, 2, 2, PLAIN, Map.of());
        s.submit(FakeJob.of(1));
        time.advance(60);
        s.submit(FakeJob.of(2).priority(1));
        time.advance(39);
        assertThat(pool.waiting()).isZero();
        time.advance(1);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(2, 1));
    }

    @Test
    void keepsManyMoreLevelsThanItRemembers() {
        Scheduler s = levels(1, 0, 1_000_000, 1_000_000, PLAIN, Map.of());
        for (int i = 500; i >= 1; i--) {
            s.submit(FakeJob.of(i).priority(i));
            if (i % 100 == 1) {
                runAll();
            }
        }
        assertThat(puppet.ran).hasSize(500);
        assertThat(puppet.ran.subList(0, 100)).first().isEqualTo(List.of(401));
        assertThat(puppet.ran).last().isEqualTo(List.of(100));
    }

    @Test
    void givesEachLevelItsOwnLimit() {
        Scheduler s = levels(
                1,
                0,
                2,
                2,
                new QueuePolicy(1, Duration.ZERO, false),
                Map.of(1L, new QueuePolicy(2, Duration.ZERO, false)));
        s.submit(FakeJob.of(1));
        assertThatThrownBy(() -> s.submit(FakeJob.of(2))).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(e.getMessage()).isEqualTo("[request id: r2] Exceeds maximum queue size");
        });
        s.submit(FakeJob.of(3).priority(1));
        s.submit(FakeJob.of(4).priority(1));
        assertThatThrownBy(() -> s.submit(FakeJob.of(5).priority(1)))
                .hasMessageContaining("Exceeds maximum queue size");
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(3), List.of(4), List.of(1));
    }

    @Test
    void countsDelayedJobsIntoTheLimit() {
        Scheduler s = policy(new QueuePolicy(1, Duration.ofNanos(10), false, TimeoutAction.DELAY));
        s.submit(FakeJob.of(1));
        time.advance(20);
        assertThatThrownBy(() -> s.submit(FakeJob.of(2))).hasMessageContaining("Exceeds maximum queue size");
    }

    @Test
    void rejectsWhatHasWaitedForTheDefaultTimeoutAtOnce() {
        Scheduler s = policy(timeout(100, false, TimeoutAction.REJECT));
        FakeJob first = FakeJob.of(1);
        s.submit(first);
        time.advance(40);
        FakeJob second = FakeJob.of(2);
        s.submit(second);
        time.advance(59);
        assertThat(first.ends.get()).isZero();
        time.advance(1);
        assertFailed(first, ErrorCode.UNAVAILABLE, "Request timeout expired");
        assertThat(second.ends.get()).isZero();
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(2));
        assertThat(s.queued()).isZero();
    }

    @Test
    void servesDelayedJobsAfterAllOthersOfTheirLevelAndNeverRejectsThem() {
        Scheduler s = policy(timeout(100, false, TimeoutAction.DELAY));
        FakeJob first = FakeJob.of(1);
        FakeJob second = FakeJob.of(2);
        s.submit(first);
        s.submit(second);
        time.advance(100);
        s.submit(FakeJob.of(3));
        time.advance(99);
        s.submit(FakeJob.of(4));
        assertThat(s.queued()).isEqualTo(4);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(3), List.of(4), List.of(1), List.of(2));
        assertThat(first.code).isEqualTo(ErrorCode.OK);
    }

    @Test
    void servesDelayedJobsBeforeTheNextLevel() {
        Scheduler s = levels(1, 0, 2, 2, PLAIN, Map.of(1L, timeout(10, false, TimeoutAction.DELAY)));
        s.submit(FakeJob.of(1).priority(2));
        s.submit(FakeJob.of(2).priority(1));
        time.advance(10);
        s.submit(FakeJob.of(3).priority(1));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(3), List.of(2), List.of(1));
    }

    @Test
    void batchesTimelyJobsWithDelayedOnesBehindThem() {
        Scheduler s = batcher(4, timeout(10, false, TimeoutAction.DELAY), DynamicBatching.EAGER);
        s.submit(FakeJob.of(1));
        time.advance(10);
        s.submit(FakeJob.of(2));
        s.submit(FakeJob.of(3));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(2, 3, 1));
    }

    @Test
    void rejectsADelayedJobAtItsHardDeadline() {
        Scheduler s = policy(timeout(10, false, TimeoutAction.DELAY));
        FakeJob job = FakeJob.until(1, time.nanos() + 50);
        s.submit(job);
        time.advance(49);
        assertThat(job.ends.get()).isZero();
        time.advance(1);
        assertFailed(job, ErrorCode.DEADLINE_EXCEEDED, "Request timeout expired");
    }

    @Test
    void reportsTheHardDeadlineFromTheQueuesTimeout() {
        Scheduler s = policy(timeout(100, false, TimeoutAction.REJECT));
        FakeJob hard = FakeJob.until(1, time.nanos() + 50);
        FakeJob soft = FakeJob.until(2, time.nanos() + 150);
        s.submit(hard);
        s.submit(soft);
        time.advance(100);
        assertFailed(hard, ErrorCode.DEADLINE_EXCEEDED, "Request timeout expired");
        assertFailed(soft, ErrorCode.UNAVAILABLE, "Request timeout expired");
    }

    @Test
    void takesARequestsTimeoutOnlyWhenItIsSmallerThanTheDefault() {
        Scheduler s = policy(timeout(100, true, TimeoutAction.REJECT));
        FakeJob shorter = FakeJob.of(1).timeout(30);
        FakeJob longer = FakeJob.of(2).timeout(500);
        s.submit(shorter);
        s.submit(longer);
        time.advance(30);
        assertFailed(shorter, ErrorCode.UNAVAILABLE, "Request timeout expired");
        time.advance(69);
        assertThat(longer.ends.get()).isZero();
        time.advance(1);
        assertFailed(longer, ErrorCode.UNAVAILABLE, "Request timeout expired");
    }

    @Test
    void takesARequestsTimeoutWhenThereIsNoDefault() {
        Scheduler s = policy(timeout(0, true, TimeoutAction.REJECT));
        FakeJob job = FakeJob.of(1).timeout(30);
        s.submit(job);
        s.submit(FakeJob.of(2));
        time.advance(30);
        assertFailed(job, ErrorCode.UNAVAILABLE, "Request timeout expired");
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(2));
    }

    @Test
    void ignoresARequestsTimeoutThatThePolicyDoesNotAllow() {
        Scheduler s = policy(timeout(100, false, TimeoutAction.REJECT));
        FakeJob job = FakeJob.of(1).timeout(30);
        s.submit(job);
        time.advance(99);
        assertThat(job.ends.get()).isZero();
        time.advance(1);
        assertThat(job.code).isEqualTo(ErrorCode.UNAVAILABLE);
    }

    @Test
    void waitsForeverWhenTheTimeoutIsBeyondAllReckoning() {
        Scheduler s = policy(new QueuePolicy(0, Duration.ofSeconds(Long.MAX_VALUE), true, TimeoutAction.REJECT));
        s.submit(FakeJob.of(1).timeout(Long.MAX_VALUE));
        time.advance(1_000_000_000_000L);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1));
    }

    @Test
    void neverRunsATimedOutJobThoughTheTimerIsLate() {
        Scheduler s = policy(timeout(10, false, TimeoutAction.REJECT));
        FakeJob job = FakeJob.of(1);
        s.submit(job);
        time.spend(10);
        runAll();
        assertThat(puppet.ran).isEmpty();
        assertFailed(job, ErrorCode.UNAVAILABLE, "Request timeout expired");
    }

    @Test
    void honoursPolicyAndLimitsWithoutABatcherToo() {
        ModelConfig config = ModelConfig.builder("m")
                .queue(new QueuePolicy(2, Duration.ofNanos(100), true))
                .instances(1)
                .build();
        Scheduler s = SchedulerFactory.create(config, puppet, pool, new SchedulerOptions(100, InlinePolicy.NEVER));
        assertThat(s).isInstanceOf(DynamicBatcher.class);
        FakeJob early = FakeJob.of(1).timeout(10);
        FakeJob late = FakeJob.of(2);
        s.submit(early);
        s.submit(late);
        assertThatThrownBy(() -> s.submit(FakeJob.of(3))).hasMessageContaining("Exceeds maximum queue size");
        time.advance(10);
        assertFailed(early, ErrorCode.UNAVAILABLE, "Request timeout expired");
        late.cancel();
        assertFailed(late, ErrorCode.CANCELLED, "Request was cancelled by its client");
        runAll();
        assertThat(puppet.ran).isEmpty();
    }

    @Test
    void honoursLevelsOfAModelThatTakesNoBatches() {
        Scheduler s = levels(0, 0, 2, 2, PLAIN, Map.of());
        s.submit(FakeJob.of(1));
        s.submit(FakeJob.of(2).priority(1));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(2), List.of(1));
    }

    @Test
    void startsOnlyAfterAsManyHaveWaitedAsATestAsksFor() {
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(4)
                .batching(DynamicBatching.EAGER)
                .instances(1)
                .build();
        Scheduler s = SchedulerFactory.create(
                config, puppet, pool, new SchedulerOptions(100, InlinePolicy.ALWAYS).delayed(3, 0));
        s.submit(FakeJob.of(1));
        s.submit(FakeJob.of(2));
        runAll();
        assertThat(puppet.ran).isEmpty();
        s.submit(FakeJob.of(3));
        runAll();
        s.submit(FakeJob.of(4));
        runAll();
        assertThat(puppet.ran).as("does not wait again").containsExactly(List.of(1, 2, 3), List.of(4));
    }

    @Test
    void leavesNoTestsDelayInTheWayOfTheEnd() {
        ModelConfig config = ModelConfig.builder("m").instances(1).build();
        Scheduler s = SchedulerFactory.create(
                config, puppet, pool, new SchedulerOptions(100, InlinePolicy.NEVER).delayed(3, 0));
        s.submit(FakeJob.of(1));
        s.close();
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1));
        assertThat(s.drained().toCompletableFuture()).isCompleted();
    }
}
