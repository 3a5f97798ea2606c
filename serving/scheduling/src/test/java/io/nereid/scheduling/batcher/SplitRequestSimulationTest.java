// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.FakeJob;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.TensorCounter;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ManualTime;
import io.nereid.scheduling.factory.SchedulerFactory;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.BatchSizePolicy;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

/**
 * Random lives of queues that cut requests and bound their batches, from printed seeds: every answer is reckoned anew.
 */
class SplitRequestSimulationTest {
    private final TensorCounter tensors = new TensorCounter();

    @RepeatedTest(80)
    void everyResponseIsThatOfItsOwnRowsInAnyOrderOfEvents(RepetitionInfo info) {
        long seed = 6_007L * info.getCurrentRepetition();
        Random random = new Random(seed);
        ManualTime time = new ManualTime();
        DeviceExecutor pool = new DeviceExecutor("simulation", 0, time, time);
        int maxBatch = 1 + random.nextInt(6);
        int maxRequest = maxBatch * (1 + random.nextInt(4));
        int maxEnqueued = random.nextBoolean() ? 0 : 1 + random.nextInt(8);
        boolean ordered = random.nextBoolean();
        List<Integer> preferred = random.nextInt(3) > 0 ? List.of() : List.of(1 + random.nextInt(maxBatch));
        DynamicBatching batching = new DynamicBatching(preferred, Duration.ofNanos(random.nextInt(3) * 500L), ordered)
                .withBatchSizePolicy(new BatchSizePolicy(List.of(), false, maxRequest, maxEnqueued));
        Doubling runner = new Doubling(maxBatch);
        InlinePolicy inline = InlinePolicy.values()[random.nextInt(3)];
        Scheduler batcher = SchedulerFactory.create(
                DynamicBatcherTest.config(maxBatch, 1 + random.nextInt(3), batching),
                runner,
                pool,
                new SchedulerOptions(1_000, inline));
        List<FakeJob> taken = new ArrayList<>();
        List<Integer> left = new ArrayList<>();
        runner.during = () -> {
            time.spend(random.nextInt(400));
            switch (random.nextInt(6)) {
                case 0 -> {
                    var unused = pool.runNext();
                }
                case 1 -> {
                    if (!taken.isEmpty()) {
                        taken.get(taken.size() - 1).cancel();
                    }
                }
                default -> {}
            }
        };
        runner.fails = () -> random.nextInt(25) == 0;
        for (int i = 0; i < 400; i++) {
            switch (random.nextInt(6)) {
                case 0, 1, 2 -> {
                    long deadline = random.nextInt(4) > 0 ? Long.MAX_VALUE : time.nanos() + random.nextInt(4_000);
                    FakeJob job = job(i, 1 + random.nextInt(maxRequest), 1 + random.nextInt(2), deadline);
                    job.onEnd = j -> {
                        if (j.error == null) {
                            left.add(j.number);
                        }
                    };
                    try {
                        batcher.submit(job);
                        taken.add(job);
                    } catch (ServingException e) {
                        assertThat(job.ends.get()).as("seed %s", seed).isZero();
                        assertThat(job.hasAction()).as("seed %s", seed).isFalse();
                        Tensor.closeAll(job.inputs);
                    }
                }
                case 3 -> {
                    if (!taken.isEmpty()) {
                        taken.get(random.nextInt(taken.size())).cancel();
                    }
                }
                case 4 -> time.advance(random.nextInt(1_000));
                default -> {
                    var unused = pool.runNext();
                }
            }
        }
        runner.during = () -> {};
        runner.fails = () -> false;
        long before = batcher.batches();
        for (int i = 0; i < 2_000 && (pool.runNext() || batcher.queued() > 0); i++) {
            time.advance(100);
        }
        if (maxEnqueued > 0) {
            assertThat(batcher.batches() - before)
                    .as("seed %s: enqueued batches", seed)
                    .isLessThanOrEqualTo(maxEnqueued);
        }
        assertThat(batcher.queued()).as("seed %s: lost wake-up", seed).isZero();
        assertThat(taken).as("seed %s", seed).allMatch(j -> j.ends.get() == 1);
        assertThat(runner.wrong).as("seed %s", seed).isEmpty();
        check(taken, "seed " + seed);
        if (ordered) {
            assertThat(left).as("seed %s: order of responses", seed).isSorted();
        }
        assertThat(tensors.open()).as("seed %s: inputs not freed", seed).isZero();
        assertThat(runner.tensors.open()).as("seed %s: outputs not freed", seed).isZero();
        batcher.close();
        assertThat(batcher.drained().toCompletableFuture())
                .as("seed %s: permits", seed)
                .isCompleted();
    }

    @Test
    void losesAndMixesNothingBetweenRealThreads() throws Exception {
        try (DeviceExecutor pool = new DeviceExecutor("storm", 3, Clock.system())) {
            for (int round = 0; round < 6; round++) {
                storm(pool, 77 + round);
            }
        }
    }

    private void storm(DeviceExecutor pool, long seed) throws Exception {
        int submitters = 3;
        int perThread = 2_000;
        Random random = new Random(seed);
        int maxBatch = 1 + random.nextInt(8);
        int maxRequest = maxBatch * 4;
        DynamicBatching batching = new DynamicBatching(
                        List.of(), seed % 2 == 0 ? Duration.ZERO : Duration.ofNanos(200_000), seed % 3 == 0)
                .withBatchSizePolicy(new BatchSizePolicy(List.of(), false, maxRequest, seed % 2 == 0 ? 40 : 0));
        Doubling runner = new Doubling(maxBatch);
        Scheduler batcher = SchedulerFactory.create(
                DynamicBatcherTest.config(maxBatch, 3, batching),
                runner,
                pool,
                new SchedulerOptions(500, InlinePolicy.NEVER));
        ConcurrentLinkedQueue<FakeJob> taken = new ConcurrentLinkedQueue<>();
        AtomicInteger rejected = new AtomicInteger();
        AtomicReference<@Nullable Throwable> trouble = new AtomicReference<>();
        CountDownLatch done = new CountDownLatch(submitters);
        for (int t = 0; t < submitters; t++) {
            int thread = t;
            Threads.named("submit")
                    .newThread(() -> {
                        try {
                            Random own = new Random(seed * 31 + thread);
                            for (int i = 0; i < perThread; i++) {
                                long deadline = own.nextInt(4) > 0
                                        ? Long.MAX_VALUE
                                        : Clock.system().nanos() + own.nextInt(300_000);
                                FakeJob job = job(
                                        thread * perThread + i,
                                        1 + own.nextInt(maxRequest),
                                        1 + own.nextInt(2),
                                        deadline);
                                try {
                                    batcher.submit(job);
                                    taken.add(job);
                                    if (own.nextInt(10) == 0) {
                                        job.cancel();
                                    }
                                } catch (ServingException e) {
                                    rejected.incrementAndGet();
                                    Tensor.closeAll(job.inputs);
                                }
                            }
                        } catch (Throwable e) {
                            trouble.set(e);
                        } finally {
                            done.countDown();
                        }
                    })
                    .start();
        }
        assertThat(done.await(60, TimeUnit.SECONDS)).isTrue();
        assertThat(trouble.get()).isNull();
        batcher.close();
        batcher.drained().toCompletableFuture().get(30, TimeUnit.SECONDS);
        long deadline = Clock.system().nanos() + 5_000_000_000L;
        while (taken.stream().anyMatch(j -> j.ends.get() == 0) && Clock.system().nanos() - deadline < 0) {
            Thread.onSpinWait();
        }
        assertThat(taken.size() + rejected.get()).isEqualTo(submitters * perThread);
        assertThat(taken).as("seed %s", seed).allMatch(j -> j.ends.get() == 1);
        assertThat(runner.wrong).as("seed %s", seed).isEmpty();
        check(taken, "seed " + seed);
        assertThat(tensors.open()).as("seed %s: inputs not freed", seed).isZero();
        assertThat(runner.tensors.open()).as("seed %s: outputs not freed", seed).isZero();
    }

    private FakeJob job(int number, int rows, int columns, long deadline) {
        FakeJob job = new FakeJob(number, rows, 0, deadline);
        int[] values =
                IntStream.range(0, rows * columns).map(i -> number * 1_000 + i).toArray();
        job.inputs = List.of(tensors.ints("x", Shape.of(rows, columns), values));
        job.keepsOutputs = true;
        return job;
    }

    private static void check(Iterable<FakeJob> jobs, String as) {
        for (FakeJob job : jobs) {
            List<Tensor> outputs = job.outputs;
            assertThat(outputs != null).as(as).isEqualTo(job.code == ErrorCode.OK);
            if (outputs != null) {
                Tensor out = outputs.get(0);
                int[] values = new int[out.byteLength() / 4];
                out.buffer().asIntBuffer().get(values);
                assertThat(out.shape().dim(0)).as(as).isEqualTo(job.rows);
                assertThat(values.length % job.rows).as(as).isZero();
                for (int i = 0; i < values.length; i++) {
                    assertThat(values[i]).as("%s, %s", as, job).isEqualTo(2 * (job.number * 1_000 + i));
                }
                Tensor.closeAll(outputs);
            }
        }
    }

    /** Doubles every element and records every violated invariant. Thread-safe. */
    private static final class Doubling implements BatchRunner {
        final TensorCounter tensors = new TensorCounter();
        final ConcurrentLinkedQueue<String> wrong = new ConcurrentLinkedQueue<>();
        volatile Runnable during = () -> {};
        volatile BooleanSupplier fails = () -> false;
        private final int maxBatch;

        Doubling(int maxBatch) {
            this.maxBatch = maxBatch;
        }

        @Override
        public void run(int instance, List<InferenceJob> jobs, BatchCloseReason cut) {
            int rows = jobs.stream().mapToInt(InferenceJob::batchSize).sum();
            if (rows > maxBatch || jobs.isEmpty()) {
                wrong.add("a batch of " + rows);
            }
            for (InferenceJob job : jobs) {
                if (!joinable(jobs.get(0), job)) {
                    wrong.add("a batch of different shapes");
                }
                if (job.request().inputs().get(0).shape().dim(0) != job.batchSize()) {
                    wrong.add("rows that are not as the job says");
                }
            }
            List<List<Tensor>> answers = new ArrayList<>();
            for (InferenceJob job : jobs) {
                Tensor in = job.request().inputs().get(0);
                int[] values = new int[in.byteLength() / 4];
                in.buffer().asIntBuffer().get(values);
                for (int i = 0; i < values.length; i++) {
                    values[i] *= 2;
                }
                answers.add(List.of(tensors.ints("y", in.shape(), values)));
            }
            during.run();
            if (fails.getAsBoolean()) {
                answers.forEach(Tensor::closeAll);
                throw new IllegalStateException("broken");
            }
            for (int i = 0; i < jobs.size(); i++) {
                jobs.get(i).complete(answers.get(i), Map.of());
            }
        }

        @Override
        public boolean joinable(InferenceJob a, InferenceJob b) {
            return a.request()
                    .inputs()
                    .get(0)
                    .shape()
                    .sameBeyondFirst(b.request().inputs().get(0).shape());
        }
    }
}
