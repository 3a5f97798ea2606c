// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.FakeJob;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Puppet;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ManualTime;
import io.nereid.scheduling.execution.RunTimeEstimator;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.QueuePolicy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

public class DynamicBatcherTest {
    private static final SchedulerOptions QUEUED = new SchedulerOptions(100, InlinePolicy.NEVER);

    private final ManualTime time = new ManualTime();
    private final DeviceExecutor pool = new DeviceExecutor("test", 0, time, time);
    private final Puppet puppet = new Puppet();

    static ModelConfig config(int maxBatch, int instances, int maxQueue) {
        return ModelConfig.builder("m")
                .maxBatchSize(maxBatch)
                .queue(new QueuePolicy(maxQueue, Duration.ZERO, true))
                .instances(instances)
                .build();
    }

    public static ModelConfig config(int maxBatch, int instances, DynamicBatching batching) {
        ModelConfig c = config(maxBatch, instances, 0);
        return c.completed("", "", maxBatch, List.of(), List.of(), batching, instances);
    }

    private DynamicBatcher batcher(int maxBatch, long delay, Integer... preferred) {
        DynamicBatching batching = new DynamicBatching(List.of(preferred), Duration.ofNanos(delay), false);
        return new DynamicBatcher(config(maxBatch, 1, batching), puppet, pool, QUEUED);
    }

    private DynamicBatcher direct(int instances, InlinePolicy inline) {
        return new DynamicBatcher(config(0, instances, 0), puppet, pool, new SchedulerOptions(100, inline));
    }

    private static List<FakeJob> submit(Scheduler scheduler, FakeJob... jobs) {
        for (FakeJob job : jobs) {
            scheduler.submit(job);
        }
        return List.of(jobs);
    }

    private static FakeJob[] jobs(int from, int to) {
        FakeJob[] jobs = new FakeJob[to - from + 1];
        for (int i = from; i <= to; i++) {
            jobs[i - from] = FakeJob.of(i);
        }
        return jobs;
    }

    private void runAll() {
        while (pool.runNext()) {
            assertThat(puppet.ran).hasSizeLessThan(10_000);
        }
        assertThat(puppet.trouble).isEmpty();
    }

    @Test
    void runsJobsOneByOneInTheOrderTheyCame() {
        DynamicBatcher direct = direct(1, InlinePolicy.NEVER);
        List<FakeJob> jobs = submit(direct, jobs(1, 3));
        assertThat(direct.queued()).isEqualTo(3);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1), List.of(2), List.of(3));
        assertThat(jobs).allMatch(j -> j.ends.get() == 1 && j.code == ErrorCode.OK && !j.hasAction());
        assertThat(direct.queued()).isZero();
        assertThat(direct.running()).isZero();
        assertThat(direct.batches()).isEqualTo(3);
    }

    @Test
    void joinsWhatWaitsWhenThereIsNoDelay() {
        DynamicBatcher batcher = batcher(4, 0);
        submit(batcher, jobs(1, 6));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1, 2, 3, 4), List.of(5, 6));
    }

    @Test
    void joinsWhatComesWhileTheInstanceIsBusy() {
        DynamicBatcher batcher = batcher(4, 0);
        puppet.during = () -> submit(batcher, jobs(2, 4));
        submit(batcher, FakeJob.of(1));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1), List.of(2, 3, 4));
    }

    @Test
    void waitsForCompanyAsLongAsTheDelayAllows() {
        DynamicBatcher batcher = batcher(4, 100);
        submit(batcher, FakeJob.of(1));
        time.advance(50);
        submit(batcher, FakeJob.of(2));
        time.advance(49);
        assertThat(pool.waiting()).isZero();
        time.advance(1);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1, 2));
    }

    @Test
    void doesNotWaitOnceTheBatchIsFull() {
        DynamicBatcher batcher = batcher(2, 100);
        submit(batcher, jobs(1, 3));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1, 2));
        time.advance(100);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1, 2), List.of(3));
    }

    @Test
    void doesNotWaitOnceAPreferredSizeIsReached() {
        DynamicBatcher batcher = batcher(8, 100, 3);
        submit(batcher, jobs(1, 3));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1, 2, 3));
    }

    @Test
    void cutsAtTheBestPreferredSizeEvenAfterTheDelay() {
        DynamicBatcher batcher = batcher(8, 100, 2, 4);
        puppet.during = () -> {
            submit(batcher, jobs(2, 6));
            time.advance(500);
        };
        submit(batcher, FakeJob.of(1));
        time.advance(100);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1), List.of(2, 3, 4, 5), List.of(6));
    }

    @Test
    void startsTheNextBatchWithAJobThatDoesNotFit() {
        DynamicBatcher batcher = batcher(4, 100);
        submit(batcher, FakeJob.rows(1, 3), FakeJob.rows(2, 2), FakeJob.rows(3, 2));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1), List.of(2, 3));
    }

    @Test
    void cutsAtAPreferredSizeRatherThanJustBelowTheLargest() {
        DynamicBatcher batcher = batcher(8, 0, 2, 4);
        submit(batcher, FakeJob.of(1), FakeJob.of(2), FakeJob.of(3), FakeJob.rows(4, 2));
        runAll();
        assertThat(puppet.ran.get(0)).containsExactly(1, 2);
    }

    @Test
    void callsASecondThreadForWhatACutLeaves() {
        DynamicBatcher batcher = new DynamicBatcher(config(8, 2, DynamicBatching.EAGER), puppet, pool, QUEUED);
        puppet.during = () -> {
            assertThat(pool.runNext()).isTrue();
            assertThat(puppet.ran).hasSize(2);
        };
        submit(batcher, FakeJob.shaped(1, 1), FakeJob.shaped(2, 2));
        assertThat(pool.waiting()).isEqualTo(1);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1), List.of(2));
    }

    @Test
    void dropsAJobWhoseClientGoesAtTheLastMoment() {
        DynamicBatcher batcher = batcher(4, 0);
        FakeJob[] jobs = jobs(1, 3);
        jobs[1].onStart = jobs[1]::cancel;
        submit(batcher, jobs);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1, 3));
        assertThat(jobs[1].code).isEqualTo(ErrorCode.CANCELLED);
    }

    @Test
    void runsAJobBeyondThePreferredSizesAlone() {
        DynamicBatcher batcher = batcher(8, 0, 2);
        submit(batcher, FakeJob.rows(1, 5), FakeJob.of(2), FakeJob.of(3), FakeJob.of(4));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1), List.of(2, 3), List.of(4));
    }

    @Test
    void keepsUnlikeShapesApartAndTheOrder() {
        DynamicBatcher batcher = batcher(8, 100);
        submit(batcher, FakeJob.shaped(1, 1), FakeJob.shaped(2, 1), FakeJob.shaped(3, 2), FakeJob.shaped(4, 1));
        time.advance(100);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1, 2), List.of(3), List.of(4));
    }

    @Test
    void rejectsWhenTheQueueIsFullAndLeavesTheJobWithTheCaller() {
        DynamicBatcher direct = new DynamicBatcher(config(0, 1, 2), puppet, pool, QUEUED);
        submit(direct, jobs(1, 2));
        FakeJob third = FakeJob.of(3);
        assertThatThrownBy(() -> direct.submit(third)).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(e.getMessage()).isEqualTo("[request id: r3] Exceeds maximum queue size");
        });
        assertThat(third.ends.get()).isZero();
        assertThat(third.hasAction()).isFalse();
        runAll();
        submit(direct, FakeJob.of(4));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1), List.of(2), List.of(4));
    }

    @Test
    void boundsTheQueueByTheServersLimitWhenTheModelSetsNone() {
        DynamicBatcher direct =
                new DynamicBatcher(config(0, 1, 0), puppet, pool, new SchedulerOptions(3, InlinePolicy.NEVER));
        submit(direct, jobs(1, 3));
        assertThatThrownBy(() -> direct.submit(FakeJob.of(4))).hasMessageContaining("Exceeds maximum queue size");
    }

    @Test
    void failsAJobAtItsDeadlineAndKeepsTheOthers() {
        DynamicBatcher direct = direct(1, InlinePolicy.NEVER);
        List<FakeJob> jobs = submit(
                direct, FakeJob.until(1, time.nanos() + 500), FakeJob.until(2, time.nanos() + 100), FakeJob.of(3));
        time.advance(99);
        assertThat(jobs.get(1).ends.get()).isZero();
        time.advance(1);
        assertThat(jobs.get(1).code).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        assertThat(jobs.get(1).error).hasMessage("[request id: r2] Request timeout expired");
        assertThat(direct.queued()).isEqualTo(2);
        time.advance(400);
        assertThat(jobs.get(0).code).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(3));
        assertThat(time.scheduled()).isZero();
    }

    @Test
    void neverRunsAJobPastItsDeadlineThoughTheTimerIsLate() {
        DynamicBatcher direct = direct(1, InlinePolicy.NEVER);
        FakeJob job = FakeJob.until(1, time.nanos() + 10);
        direct.submit(job);
        time.spend(10);
        runAll();
        assertThat(puppet.ran).isEmpty();
        assertThat(job.code).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
    }

    @Test
    void rejectsAJobThatComesTooLateOrWhoseClientHasGone() {
        DynamicBatcher direct = direct(1, InlinePolicy.ALWAYS);
        assertThatThrownBy(() -> direct.submit(FakeJob.until(1, time.nanos())))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.DEADLINE_EXCEEDED));
        FakeJob gone = FakeJob.of(2);
        gone.cancel();
        assertThatThrownBy(() -> direct.submit(gone))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.CANCELLED));
        assertThat(puppet.ran).isEmpty();
    }

    @Test
    void dropsACancelledJobAtOnce() {
        DynamicBatcher batcher = batcher(4, 100);
        List<FakeJob> jobs = submit(batcher, jobs(1, 3));
        jobs.get(1).cancel();
        assertThat(jobs.get(1).code).isEqualTo(ErrorCode.CANCELLED);
        assertThat(batcher.queued()).isEqualTo(2);
        time.advance(100);
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1, 3));
        assertThat(jobs).allMatch(j -> j.ends.get() == 1);
    }

    @Test
    void givesEveryRunAnInstanceOfItsOwn() {
        DynamicBatcher direct = direct(2, InlinePolicy.NEVER);
        puppet.during = () -> {
            assertThat(direct.running()).isEqualTo(1);
            puppet.during = () -> {
                assertThat(direct.running()).isEqualTo(2);
                assertThat(pool.waiting()).isZero();
            };
            assertThat(pool.runNext()).isTrue();
        };
        submit(direct, jobs(1, 3));
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1), List.of(2), List.of(3));
        assertThat(puppet.instances.get(0)).isNotEqualTo(puppet.instances.get(1));
        assertThat(puppet.instances).allMatch(i -> i == 0 || i == 1);
    }

    @Test
    void runsAKnownTinyModelOnTheCallersThread() {
        DynamicBatcher direct = direct(1, InlinePolicy.ALWAYS);
        FakeJob second = FakeJob.of(2);
        puppet.during = () -> {
            direct.submit(second);
            assertThat(second.ends.get()).isZero();
        };
        FakeJob first = FakeJob.of(1);
        direct.submit(first);
        assertThat(first.ends.get()).isEqualTo(1);
        assertThat(pool.waiting()).isEqualTo(1);
        FakeJob third = FakeJob.of(3);
        direct.submit(third);
        assertThat(third.ends.get()).as("jobs must keep their order").isZero();
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1), List.of(2), List.of(3));
    }

    @Test
    void findsOutThatAModelIsTinyAndThatItNoLongerIs() {
        DynamicBatcher direct = direct(1, InlinePolicy.MEASURED);
        for (int i = 0; i < RunTimeEstimator.RUNS_BEFORE_JUDGEMENT; i++) {
            puppet.during = () -> time.spend(20_000);
            direct.submit(FakeJob.of(i));
            assertThat(pool.waiting()).isEqualTo(1);
            runAll();
        }
        puppet.during = () -> time.spend(50_000_000);
        FakeJob inline = FakeJob.of(100);
        direct.submit(inline);
        assertThat(inline.ends.get()).isEqualTo(1);
        FakeJob pooled = FakeJob.of(101);
        direct.submit(pooled);
        assertThat(pooled.ends.get()).isZero();
    }

    @Test
    void neverRunsASlowModelOnTheCallersThread() {
        DynamicBatcher direct = direct(1, InlinePolicy.MEASURED);
        for (int i = 0; i < 100; i++) {
            puppet.during = () -> time.spend(40_000);
            direct.submit(FakeJob.of(i));
            assertThat(pool.waiting()).isEqualTo(1);
            runAll();
        }
    }

    @Test
    void letsResponsesLeaveInTheOrderOfTheRequests() {
        DynamicBatching batching = new DynamicBatching(List.of(), Duration.ZERO, true);
        DynamicBatcher batcher = new DynamicBatcher(config(1, 2, batching), puppet, pool, QUEUED);
        List<Integer> left = new ArrayList<>();
        FakeJob[] jobs = jobs(1, 3);
        for (FakeJob job : jobs) {
            job.onEnd = j -> left.add(j.number);
        }
        // While job 1 runs, job 2 starts and ends.
        puppet.during = () -> {
            assertThat(pool.runNext()).isTrue();
            assertThat(puppet.ran).hasSize(2);
            assertThat(left).isEmpty();
        };
        submit(batcher, jobs);
        runAll();
        assertThat(left).containsExactly(1, 2, 3);
        assertThat(jobs).allMatch(j -> j.ends.get() == 1);
    }

    @Test
    void doesNotHoldOrderedResponsesBackForAJobThatWasDropped() {
        DynamicBatching batching = new DynamicBatching(List.of(), Duration.ZERO, true);
        DynamicBatcher batcher = new DynamicBatcher(config(1, 2, batching), puppet, pool, QUEUED);
        List<FakeJob> jobs = submit(batcher, jobs(1, 3));
        jobs.get(0).cancel();
        assertThat(jobs.get(0).code).isEqualTo(ErrorCode.CANCELLED);
        runAll();
        assertThat(jobs).allMatch(j -> j.ends.get() == 1);
        assertThat(jobs.get(2).code).isEqualTo(ErrorCode.OK);
    }

    @Test
    void rejectsNewJobsOnceClosedButRunsThoseThatWait() {
        DynamicBatcher batcher = batcher(4, 1_000_000);
        List<FakeJob> jobs = submit(batcher, jobs(1, 2));
        CompletableFuture<Void> drained = batcher.drained().toCompletableFuture();
        batcher.close();
        assertThat(drained).isNotDone();
        assertThatThrownBy(() -> batcher.submit(FakeJob.of(3))).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(e.getMessage()).contains("scheduler for model has stopped accepting new inference requests");
        });
        runAll();
        assertThat(puppet.ran).containsExactly(List.of(1, 2));
        assertThat(jobs).allMatch(j -> j.code == ErrorCode.OK);
        assertThat(drained).isCompleted();
    }

    @Test
    void isDrainedAtOnceWhenClosedIdle() {
        DynamicBatcher direct = direct(1, InlinePolicy.NEVER);
        direct.close();
        direct.close();
        assertThat(direct.drained().toCompletableFuture()).isCompleted();
    }

    @Test
    void failsWhatWaitsWhenThePoolIsClosed() {
        DynamicBatcher direct = direct(1, InlinePolicy.NEVER);
        pool.close();
        FakeJob job = FakeJob.of(1);
        direct.submit(job);
        assertThat(job.code).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(direct.queued()).isZero();
    }

    @Test
    void failsTheJobsOfARunnerThatThrows() {
        BatchRunner broken = new BatchRunner() {
            @Override
            public void run(int instance, List<InferenceJob> jobs, BatchCloseReason cut) {
                throw new IllegalStateException("broken");
            }

            @Override
            public boolean joinable(InferenceJob a, InferenceJob b) {
                return true;
            }
        };
        DynamicBatcher direct = new DynamicBatcher(config(0, 1, 0), broken, pool, QUEUED);
        List<FakeJob> jobs = submit(direct, jobs(1, 2));
        runAll();
        assertThat(jobs).allMatch(j -> j.code == ErrorCode.INTERNAL && j.ends.get() == 1);
    }

    @Test
    void takesTurnsBetweenModels() {
        DynamicBatcher a = direct(1, InlinePolicy.NEVER);
        DynamicBatcher b = direct(1, InlinePolicy.NEVER);
        submit(a, jobs(1, 3));
        submit(b, jobs(11, 13));
        runAll();
        assertThat(puppet.ran)
                .containsExactly(List.of(1), List.of(11), List.of(2), List.of(12), List.of(3), List.of(13));
    }
}
