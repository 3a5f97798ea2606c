// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.BatchStrategy;
import io.nereid.scheduling.FakeJob;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ManualTime;
import io.nereid.scheduling.factory.SchedulerFactory;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.BatchSizePolicy;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.parameters.PaddingPolicy;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

/** Batches of requests of different lengths, in virtual time. The shape of a {@link FakeJob} is its length. */
class LengthBatchingTest {
    private static final int FIRST_FIXED = 32;

    private final ManualTime time = new ManualTime();
    private final DeviceExecutor pool = new DeviceExecutor("test", 0, time, time);
    private final Lengths runner = new Lengths();

    /** Runs take {@code fixed} and a nanosecond for each position. */
    private final class Lengths implements BatchRunner {
        final List<List<Integer>> ran = new ArrayList<>();
        final List<BatchCloseReason> reasons = new ArrayList<>();
        long fixed;
        long busy;

        @Override
        public void run(int instance, List<InferenceJob> jobs, BatchCloseReason reason) {
            ran.add(jobs.stream()
                    .map(j -> Integer.parseInt(j.request().id().substring(1)))
                    .toList());
            reasons.add(reason);
            long rows = jobs.stream().mapToLong(InferenceJob::batchSize).sum();
            long longest = jobs.stream().mapToLong(this::length).max().orElse(0);
            busy += fixed + rows * longest;
            time.spend(fixed + rows * longest);
            for (InferenceJob job : jobs) {
                job.complete(List.of(), Map.of());
            }
        }

        @Override
        public boolean joinable(InferenceJob a, InferenceJob b) {
            return true;
        }

        @Override
        public int length(InferenceJob job) {
            return lengths.getOrDefault(job.request().id(), 0);
        }
    }

    private final Map<String, Integer> lengths = new HashMap<>();

    private Scheduler batcher(int max, DynamicBatching batching, String order, @Nullable BatchStrategy strategy) {
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(max)
                .batching(batching)
                .parameters(Map.of(
                        PaddingPolicy.INPUTS, "x=0", PaddingPolicy.ORDER, order, DynamicBatching.ANTICIPATION, "off"))
                .instances(1)
                .build();
        return SchedulerFactory.create(
                config, runner, pool, new SchedulerOptions(100_000, InlinePolicy.NEVER).withStrategy(strategy));
    }

    private Scheduler batcher(int max) {
        return batcher(max, DynamicBatching.EAGER, "length", null);
    }

    private FakeJob job(int number, int rows, int length) {
        lengths.put("r" + number, length);
        return FakeJob.rows(number, rows);
    }

    private void runAll() {
        while (pool.runNext()) {
            assertThat(runner.ran).hasSizeLessThan(100_000);
        }
    }

    @Test
    void requestsOfALengthShareABatchAndTheOldestIsInTheFirst() {
        Scheduler s = batcher(8);
        int[] all = {500, 10, 490, 12, 11, 505};
        for (int i = 0; i < all.length; i++) {
            s.submit(job(i, 1, all[i]));
        }
        runAll();
        assertThat(runner.ran).containsExactly(List.of(0, 2, 5), List.of(1, 3, 4));
        assertThat(runner.reasons).containsExactly(BatchCloseReason.LENGTH, BatchCloseReason.NO_MORE);
    }

    @Test
    void withoutTheParameterOrWithArrivalTheyRunInOrder() {
        Scheduler s = batcher(4, DynamicBatching.EAGER, "arrival", null);
        for (int i = 0; i < 6; i++) {
            s.submit(job(i, 1, i % 2 == 0 ? 500 : 10));
        }
        runAll();
        assertThat(runner.ran).containsExactly(List.of(0, 1, 2, 3), List.of(4, 5));
    }

    @Test
    void littlePaddingIsBetterThanAnotherRun() {
        Scheduler s = batcher(8);
        // To pad the two short ones takes 20 positions, another run FIRST_FIXED.
        s.submit(job(0, 1, 20));
        s.submit(job(1, 1, 10));
        s.submit(job(2, 1, 10));
        runAll();
        assertThat(runner.ran).containsExactly(List.of(0, 1, 2));
    }

    @Test
    void rowsOfRequestsFillTheBatch() {
        Scheduler s = batcher(4);
        s.submit(job(0, 3, 10));
        s.submit(job(1, 2, 10));
        s.submit(job(2, 1, 10));
        runAll();
        assertThat(runner.ran.get(0)).contains(0);
        assertThat(runner.ran).hasSize(2);
        assertThat(runner.ran.stream().flatMap(List::stream)).containsExactlyInAnyOrder(0, 1, 2);
        assertThat(runner.ran).doesNotContain(List.of(0, 1));
    }

    @Test
    void aPreferredSizeIsTheLargestOneAndALargerRequestRunsAlone() {
        Scheduler s = batcher(8, new DynamicBatching(List.of(2), Duration.ZERO, false), "length", null);
        s.submit(job(0, 5, 10));
        for (int i = 1; i < 4; i++) {
            s.submit(job(i, 1, 10));
        }
        runAll();
        assertThat(runner.ran).hasSize(3).startsWith(List.of(0));
        assertThat(runner.ran).allMatch(batch -> batch.size() <= 2);
        assertThat(runner.reasons.get(0)).isEqualTo(BatchCloseReason.PREFERRED_SIZE);
    }

    @Test
    void anUrgentLevelRunsFirstAndForItself() {
        Scheduler s = batcher(8, new DynamicBatching(List.of(), Duration.ZERO, false, 2, 2, Map.of()), "length", null);
        s.submit(job(0, 1, 10));
        s.submit(job(1, 1, 10).priority(1));
        s.submit(job(2, 1, 90).priority(1));
        s.submit(job(3, 1, 10));
        runAll();
        assertThat(runner.ran.get(0)).contains(1).doesNotContain(0, 3);
        assertThat(runner.ran.get(runner.ran.size() - 1)).containsExactly(0, 3);
    }

    @Test
    void theDelayIsTheLongestWaitAsBefore() {
        Scheduler s = batcher(8, new DynamicBatching(List.of(), Duration.ofNanos(100), false), "length", null);
        s.submit(job(0, 1, 10));
        assertThat(pool.runNext()).isFalse();
        time.advance(50);
        s.submit(job(1, 1, 12));
        assertThat(pool.runNext()).isFalse();
        time.advance(50);
        runAll();
        assertThat(runner.ran).containsExactly(List.of(0, 1));
        assertThat(runner.reasons).containsExactly(BatchCloseReason.DELAY);
    }

    @Test
    void orderedResponsesLeaveInTheOrderOfTheRequests() {
        Scheduler s = batcher(8, new DynamicBatching(List.of(), Duration.ZERO, true), "length", null);
        List<Integer> ended = new ArrayList<>();
        int[] all = {500, 10, 490, 12};
        for (int i = 0; i < all.length; i++) {
            FakeJob job = job(i, 1, all[i]);
            job.onEnd = j -> ended.add(j.number);
            s.submit(job);
        }
        runAll();
        assertThat(runner.ran).containsExactly(List.of(0, 2), List.of(1, 3));
        assertThat(ended).containsExactly(0, 1, 2, 3);
    }

    @Test
    void aRequestThatIsSplitRunsInOrderOfArrival() {
        Scheduler s = batcher(
                4,
                DynamicBatching.EAGER.withBatchSizePolicy(new BatchSizePolicy(List.of(), false, 16, 0)),
                "length",
                null);
        FakeJob late = job(0, 1, 500);
        s.submit(late);
        s.submit(job(1, 1, 10));
        FakeJob large = job(2, 10, 10);
        large.inputs = List.of();
        s.submit(large);
        s.submit(job(3, 1, 490));
        runAll();
        assertThat(late.ends.get()).isEqualTo(1);
        assertThat(large.ends.get()).isEqualTo(1);
        assertThat(runner.ran.get(0)).containsExactly(0, 3);
    }

    @Test
    void aStrategyDecidesForItself() {
        BatchStrategy all = new BatchStrategy() {
            @Override
            public @Nullable Object begin() {
                return null;
            }

            @Override
            public boolean include(InferenceJob job, @Nullable Object batch) {
                return true;
            }

            @Override
            public void end(@Nullable Object batch) {}
        };
        Scheduler s = batcher(4, DynamicBatching.EAGER, "length", all);
        s.submit(job(0, 1, 500));
        s.submit(job(1, 1, 10));
        runAll();
        assertThat(runner.ran).containsExactly(List.of(0, 1));
    }

    /** Every job runs at the latest when all that came before it have run, whatever comes after it. */
    @Test
    void nothingWaitsForever() {
        Scheduler s = batcher(4);
        FakeJob only = job(0, 1, 1_000);
        for (int i = 1; i <= 20; i++) {
            s.submit(job(i, 1, 10));
        }
        s.submit(only);
        int next = 100;
        for (int run = 0; run < 20 && only.ends.get() == 0; run++) {
            for (int i = 0; i < 4; i++) {
                s.submit(job(next++, 1, 10));
            }
            assertThat(pool.runNext()).isTrue();
        }
        assertThat(only.ends.get()).isEqualTo(1);
    }

    /** The first batch of the queue belongs to a division of all jobs that is as quick as the best of all divisions. */
    @RepeatedTest(20)
    void theTimeOfAllRunsIsTheLeastPossible(RepetitionInfo info) {
        Random random = new Random(31L * info.getCurrentRepetition());
        runner.fixed = FIRST_FIXED;
        int max = 2 + random.nextInt(4);
        Scheduler s = batcher(max);
        int count = 1 + random.nextInt(9);
        List<int[]> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            int[] rowsAndLength = {1, 1 + random.nextInt(60)};
            all.add(rowsAndLength);
            s.submit(job(i, rowsAndLength[0], rowsAndLength[1]));
        }
        runAll();
        assertThat(runner.busy).isEqualTo(best(all, max, new ArrayList<>()));
    }

    /** Tries every division into batches. */
    private static long best(List<int[]> rest, int max, List<List<int[]>> batches) {
        if (rest.isEmpty()) {
            long sum = 0;
            for (List<int[]> batch : batches) {
                long rows = batch.stream().mapToLong(j -> j[0]).sum();
                if (rows > max) {
                    return Long.MAX_VALUE;
                }
                sum += FIRST_FIXED
                        + rows * batch.stream().mapToLong(j -> j[1]).max().orElse(0);
            }
            return sum;
        }
        int[] job = rest.get(0);
        List<int[]> others = rest.subList(1, rest.size());
        long best = Long.MAX_VALUE;
        for (int i = 0; i <= batches.size(); i++) {
            boolean opened = i == batches.size();
            if (opened) {
                batches.add(new ArrayList<>());
            }
            batches.get(i).add(job);
            best = Math.min(best, best(others, max, batches));
            batches.get(i).remove(batches.get(i).size() - 1);
            if (opened) {
                batches.remove(i);
            }
        }
        return best;
    }

    /** What a run takes apart from its positions decides how alike the lengths of a batch are, once it was measured. */
    @Test
    void longRunsOfAnyLengthShareBatchesMore() {
        assertThat(meanRows(0)).isLessThan(6);
        assertThat(meanRows(100_000)).isGreaterThan(14);
    }

    private double meanRows(long fixed) {
        runner.fixed = fixed;
        Scheduler s = batcher(16);
        // At first the fit is not known.
        closedLoop(s, 16, 300);
        closedLoop(s, 16, 300);
        return 300.0 / runner.ran.size();
    }

    /** Sixty-four clients with the lengths of sentences: the time of all runs is less than without the order. */
    @Test
    void mixedLengthsTakeLessTimeThanInOrderOfArrival() {
        runner.fixed = 20;
        closedLoop(batcher(32, DynamicBatching.EAGER, "arrival", null), 64, 3_000);
        long byArrival = runner.busy;
        runner.busy = 0;
        closedLoop(batcher(32), 64, 3_000);
        assertThat(byArrival).isGreaterThan(2 * runner.busy);
    }

    private void closedLoop(Scheduler s, int clients, int requests) {
        runner.ran.clear();
        Random random = new Random(5);
        Deque<FakeJob> ready = new ArrayDeque<>();
        int sent = 0;
        for (int i = 0; i < clients; i++) {
            ready.add(drawn(sent++, random));
        }
        int ended = 0;
        while (ended < requests) {
            while (!ready.isEmpty()) {
                s.submit(ready.remove());
            }
            int before = runner.ran.size();
            assertThat(pool.runNext()).isTrue();
            for (List<Integer> batch : runner.ran.subList(before, runner.ran.size())) {
                ended += batch.size();
                for (int i = 0; i < batch.size(); i++) {
                    ready.add(drawn(sent++, random));
                }
            }
        }
        runAll();
    }

    private FakeJob drawn(int number, Random random) {
        int length = (int) Math.max(4, Math.min(256, Math.exp(3 + 0.9 * random.nextGaussian())));
        return job(number, 1, length);
    }
}
