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
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.admission.AdmissionControl;
import io.nereid.scheduling.admission.AdmissionPolicy;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ManualTime;
import io.nereid.spi.config.BatchSizePolicy;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.QueuePolicy;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** How a queue applies the decisions of an admission policy. */
class AdmissionTest {
    private static final long SECOND = 1_000_000_000L;

    private final ManualTime time = new ManualTime();
    private final DeviceExecutor pool = new DeviceExecutor("test", 0, time, time);
    private final Puppet puppet = new Puppet();
    private final Script policy = new Script();
    private final AdmissionControl control = new AdmissionControl(() -> policy);

    private DynamicBatcher batcher(ModelConfig config) {
        return new DynamicBatcher(
                config, puppet, pool, new SchedulerOptions(100, InlinePolicy.NEVER).withAdmission(control));
    }

    private DynamicBatcher direct() {
        return batcher(ModelConfig.builder("m").instances(1).build());
    }

    private static FakeJob[] submit(DynamicBatcher batcher, int count) {
        FakeJob[] jobs = new FakeJob[count];
        for (int i = 0; i < count; i++) {
            jobs[i] = FakeJob.of(i);
            batcher.submit(jobs[i]);
        }
        return jobs;
    }

    @Test
    void aRefusedJobGetsUnavailableAtOnceAndAComputedTimeToRetry() {
        DynamicBatcher batcher = direct();
        submit(batcher, 3);
        policy.refuses = true;
        FakeJob refused = FakeJob.of(9);
        assertThatThrownBy(() -> batcher.submit(refused)).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(e.retryAfter()).isEqualTo(Duration.ofSeconds(4));
            assertThat(e.describe())
                    .isEqualTo("[request id: r9] model 'm' is overloaded: 3 requests wait, and more arrive than are"
                            + " served (try again in 4 s)");
        });
        assertThat(refused.ends.get()).isZero();
        assertThat(refused.hasAction()).isFalse();
        assertThat(policy.ahead).containsExactly(0, 1, 2, 3);
        assertThat(batcher.queued()).isEqualTo(3);
    }

    @Test
    void jobsWithATimeoutOfTheirOwnAndPartsOfAcceptedRequestsAreNeverRefused() {
        DynamicBatcher batcher = direct();
        policy.refuses = true;
        batcher.submit(FakeJob.of(1).timeout(5 * SECOND));
        FakeJob step = FakeJob.of(2);
        step.refusable = false;
        batcher.submit(step);
        assertThat(batcher.queued()).isEqualTo(2);
        assertThat(policy.ahead).isEmpty();
    }

    @Test
    void aConfiguredLimitOfTheQueueReplacesTheAdmission() {
        policy.refuses = true;
        ModelConfig plain =
                ModelConfig.builder("m").instances(1).maxBatchSize(4).build();
        QueuePolicy limits = new QueuePolicy(50, Duration.ZERO, true);
        List<ModelConfig> limited = List.of(
                plain.toBuilder().batching(DynamicBatching.EAGER).queue(limits).build(),
                plain.toBuilder()
                        .batching(DynamicBatching.EAGER)
                        .queue(new QueuePolicy(0, Duration.ofSeconds(3), true))
                        .build(),
                plain.toBuilder()
                        .batching(
                                DynamicBatching.EAGER.withBatchSizePolicy(new BatchSizePolicy(List.of(), false, 0, 20)))
                        .build());
        for (ModelConfig config : limited) {
            batcher(config).submit(FakeJob.of(1));
        }
        assertThat(policy.ahead).isEmpty();
        DynamicBatcher unlimited = batcher(plain);
        assertThatThrownBy(() -> unlimited.submit(FakeJob.of(1))).hasMessageContaining("overloaded");
    }

    @Test
    void whenAnOverloadIsFoundTheOldestJobsAreRefusedAndTheOthersAreServedInOrder() {
        DynamicBatcher batcher = direct();
        FakeJob[] jobs = submit(batcher, 6);
        FakeJob step = FakeJob.of(6);
        step.refusable = false;
        batcher.submit(step);
        policy.overloadedWhenTaken = true;
        policy.keep = 3;
        assertThat(pool.runNext()).isTrue();
        assertThat(policy.events).containsExactly("took 1, 6 left", "3 removed", "ran");
        for (int i = 1; i <= 3; i++) {
            assertThat(jobs[i].code).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(jobs[i].error).isNotNull();
            assertThat(jobs[i].error.retryAfter()).isEqualTo(Duration.ofSeconds(4));
        }
        assertThat(batcher.queued()).isEqualTo(3);
        while (pool.runNext()) {
            // the rest
        }
        assertThat(puppet.ran).containsExactly(List.of(0), List.of(4), List.of(5), List.of(6));
    }

    @Test
    void acceptedJobsAreRefusedWhenTheirTimeIsOverButPartsOfRequestsAreNot() {
        DynamicBatcher batcher = direct();
        policy.limit = SECOND;
        FakeJob first = FakeJob.of(1);
        FakeJob step = FakeJob.of(2);
        step.refusable = false;
        FakeJob patient = FakeJob.of(3).timeout(9 * SECOND);
        FakeJob hurried = FakeJob.until(4, time.nanos() + SECOND / 2);
        for (FakeJob job : List.of(first, step, patient, hurried)) {
            batcher.submit(job);
        }
        time.advance(SECOND / 2);
        assertThat(hurried.code).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        assertThat(first.ends.get()).isZero();
        time.advance(SECOND / 2);
        assertThat(first.code).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(first.error).hasMessageContaining("is overloaded");
        time.advance(SECOND);
        assertThat(step.ends.get()).isZero();
        assertThat(patient.ends.get()).isZero();
        assertThat(policy.events).containsExactly("1 removed", "1 removed");
    }

    @Test
    void onlyJobsOfTheSameOrAHigherPriorityAreAheadAndLowerOnesAreRefusedFirst() {
        DynamicBatching levels = new DynamicBatching(List.of(), Duration.ZERO, false, 3, 2, Map.of());
        DynamicBatcher batcher = batcher(ModelConfig.builder("m")
                .instances(1)
                .maxBatchSize(1)
                .batching(levels)
                .build());
        List<FakeJob> jobs = new ArrayList<>();
        for (long priority : new long[] {3, 2, 1, 3, 2, 1}) {
            FakeJob job = FakeJob.of(jobs.size()).priority(priority);
            jobs.add(job);
            batcher.submit(job);
        }
        assertThat(policy.ahead).containsExactly(0, 0, 0, 3, 2, 1);
        policy.overloadedWhenTaken = true;
        policy.keep = 2;
        while (pool.runNext()) {
            policy.overloadedWhenTaken = false;
        }
        // Job 2 had been taken; of the rest 5 is the most urgent, and 4 is newer than 1.
        assertThat(puppet.ran).containsExactly(List.of(2), List.of(5), List.of(4));
        assertThat(jobs)
                .filteredOn(j -> j.code == ErrorCode.UNAVAILABLE)
                .extracting(j -> j.number)
                .containsExactly(0, 1, 3);
    }

    @Test
    void aSplitRequestThatHasBegunIsNotRefused() {
        ModelConfig config = ModelConfig.builder("m")
                .instances(1)
                .maxBatchSize(2)
                .batching(DynamicBatching.EAGER.withBatchSizePolicy(new BatchSizePolicy(List.of(), true, 8, 0)))
                .build();
        DynamicBatcher batcher = batcher(config);
        policy.limit = SECOND;
        FakeJob large = FakeJob.rows(1, 6);
        batcher.submit(large);
        assertThat(pool.runNext()).isTrue();
        assertThat(batcher.queued()).isEqualTo(1);
        time.advance(3 * SECOND);
        assertThat(large.error).isNull();
        while (pool.runNext()) {
            // the other parts
        }
        assertThat(large.ends.get()).isEqualTo(1);
        assertThat(policy.events)
                .as("it leaves the queue with its last part")
                .containsExactly("took 0, 1 left", "ran", "took 0, 1 left", "ran", "took 1, 0 left", "ran");
    }

    @Test
    void theServerKnowsWhetherAnyQueueRefuses() {
        DynamicBatcher one = direct();
        DynamicBatcher two = direct();
        submit(one, 1);
        assertThat(control.refuses()).isFalse();
        policy.refuses = true;
        assertThatThrownBy(() -> one.submit(FakeJob.of(5))).isInstanceOf(ServingException.class);
        assertThat(control.refuses()).isTrue();
        assertThat(one.refusal(FakeJob.of(6))).isNotNull();
        two.close();
        assertThat(control.refuses()).isTrue();
        one.close();
        while (pool.runNext()) {
            // the queued job
        }
        assertThat(control.refuses()).as("the queue that refused is gone").isFalse();
    }

    /** A policy whose decisions the test makes. */
    private static final class Script implements AdmissionPolicy {
        boolean refuses;
        boolean overloadedWhenTaken;
        int keep;
        long limit = NEVER;
        final List<Integer> ahead = new ArrayList<>();
        final List<String> events = new ArrayList<>();

        @Override
        public boolean admits(long now, int before, long deadline) {
            ahead.add(before);
            return !refuses;
        }

        @Override
        public boolean taken(long now, int count, long waited, int left) {
            events.add("took " + count + ", " + left + " left");
            return overloadedWhenTaken;
        }

        @Override
        public void removed(int count) {
            events.add(count + " removed");
        }

        @Override
        public void ran(long nanos) {
            events.add("ran");
        }

        @Override
        public int keep() {
            return keep;
        }

        @Override
        public long waitLimit() {
            return limit;
        }

        @Override
        public long retryNanos() {
            return 3 * SECOND + 1;
        }

        @Override
        public boolean refuses() {
            return refuses;
        }

        @Override
        public String reason() {
            return "the test says so";
        }
    }
}
