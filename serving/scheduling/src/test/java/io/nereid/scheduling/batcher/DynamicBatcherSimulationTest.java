// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.FakeJob;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Puppet;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.ManualTime;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.DynamicBatching;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.RepeatedTest;
import org.junit.jupiter.api.RepetitionInfo;
import org.junit.jupiter.api.Test;

/** Random operations on queues from printed seeds, with checks of invariants. */
class DynamicBatcherSimulationTest {
    @RepeatedTest(60)
    void holdsItsPromisesInAnyOrderOfEvents(RepetitionInfo info) {
        long seed = 7_919L * info.getCurrentRepetition();
        Random random = new Random(seed);
        ManualTime time = new ManualTime();
        DeviceExecutor pool = new DeviceExecutor("simulation", 0, time, time);
        int instances = 1 + random.nextInt(3);
        int maxBatch = 1 + random.nextInt(8);
        int maxQueue = 3 + random.nextInt(30);
        boolean ordered = random.nextBoolean();
        List<Integer> preferred = random.nextBoolean() ? List.of() : List.of(1 + random.nextInt(maxBatch));
        DynamicBatching batching = new DynamicBatching(preferred, Duration.ofNanos(random.nextInt(3) * 500L), ordered);
        Checker checker = new Checker(maxBatch, instances);
        InlinePolicy inline = InlinePolicy.values()[random.nextInt(3)];
        DynamicBatcher batcher = new DynamicBatcher(
                DynamicBatcherTest.config(maxBatch, instances, batching),
                checker,
                pool,
                new SchedulerOptions(maxQueue, inline));
        List<FakeJob> taken = new ArrayList<>();
        List<Integer> left = new ArrayList<>();
        checker.during = () -> {
            time.spend(random.nextInt(400));
            if (random.nextInt(4) == 0) {
                var unused = pool.runNext();
            }
        };
        for (int i = 0; i < 600; i++) {
            switch (random.nextInt(6)) {
                case 0, 1, 2 -> {
                    long deadline = random.nextBoolean() ? Long.MAX_VALUE : time.nanos() + random.nextInt(4_000);
                    FakeJob job = new FakeJob(i, 1 + random.nextInt(maxBatch), random.nextInt(2), deadline);
                    job.onEnd = j -> {
                        if (j.error == null) {
                            left.add(j.number);
                        }
                    };
                    try {
                        batcher.submit(job);
                        taken.add(job);
                    } catch (ServingException e) {
                        assertThat(job.ends.get())
                                .as("seed %s: rejected and ended", seed)
                                .isZero();
                        assertThat(job.hasAction()).as("seed %s", seed).isFalse();
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
            assertThat(batcher.queued()).as("seed %s", seed).isBetween(0, maxQueue);
        }
        for (int i = 0; i < 2_000 && (pool.runNext() || batcher.queued() > 0); i++) {
            time.advance(100);
        }
        assertThat(batcher.queued()).as("seed %s: lost wake-up", seed).isZero();
        assertThat(batcher.running()).as("seed %s", seed).isZero();
        assertThat(taken).as("seed %s", seed).allMatch(j -> j.ends.get() == 1);
        assertThat(checker.wrong).as("seed %s", seed).isEmpty();
        if (ordered) {
            assertThat(left).as("seed %s: order of responses", seed).isSorted();
        }
        assertThat(checker.begun).as("seed %s: order of runs", seed).isSorted();
        batcher.close();
        assertThat(batcher.drained().toCompletableFuture())
                .as("seed %s: permits", seed)
                .isCompleted();
    }

    @Test
    void losesNothingBetweenRealThreads() throws Exception {
        long seed = 42;
        try (DeviceExecutor pool = new DeviceExecutor("storm", 3, Clock.system())) {
            for (int round = 0; round < 6; round++) {
                storm(pool, seed + round);
            }
        }
    }

    private static void storm(DeviceExecutor pool, long seed) throws Exception {
        int submitters = 3;
        int perThread = 4_000;
        Random random = new Random(seed);
        int maxBatch = 1 + random.nextInt(8);
        int instances = 1 + random.nextInt(3);
        boolean ordered = seed % 3 == 0;
        DynamicBatching batching =
                new DynamicBatching(List.of(), seed % 2 == 0 ? Duration.ZERO : Duration.ofNanos(200_000), ordered);
        Checker checker = new Checker(maxBatch, instances);
        DynamicBatcher batcher = new DynamicBatcher(
                DynamicBatcherTest.config(maxBatch, instances, batching),
                checker,
                pool,
                new SchedulerOptions(500, InlinePolicy.values()[(int) (seed % 3)]));
        ConcurrentLinkedQueue<FakeJob> taken = new ConcurrentLinkedQueue<>();
        AtomicInteger rejected = new AtomicInteger();
        AtomicReference<Throwable> trouble = new AtomicReference<>();
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
                                FakeJob job = new FakeJob(
                                        thread * perThread + i, 1 + own.nextInt(maxBatch), own.nextInt(2), deadline);
                                try {
                                    batcher.submit(job);
                                    taken.add(job);
                                    if (own.nextInt(10) == 0) {
                                        job.cancel();
                                    }
                                } catch (ServingException e) {
                                    rejected.incrementAndGet();
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
        assertThat(taken.size() + rejected.get()).isEqualTo(submitters * perThread);
        assertThat(checker.wrong).as("seed %s", seed).isEmpty();
        assertThat(batcher.queued()).isZero();
        // Ends on other threads (timer, canceller) may lag behind the queue by a moment.
        long deadline = Clock.system().nanos() + 5_000_000_000L;
        while (taken.stream().anyMatch(j -> j.ends.get() == 0) && Clock.system().nanos() - deadline < 0) {
            Thread.onSpinWait();
        }
        assertThat(taken).as("seed %s", seed).allMatch(j -> j.ends.get() == 1);
    }

    /** Runs batches and records every violated invariant. */
    private static final class Checker implements BatchRunner {
        final ConcurrentLinkedQueue<String> wrong = new ConcurrentLinkedQueue<>();
        final List<Integer> begun = new ArrayList<>();
        Runnable during = () -> {};
        private final int maxBatch;
        private final AtomicIntegerArray busy;

        Checker(int maxBatch, int instances) {
            this.maxBatch = maxBatch;
            this.busy = new AtomicIntegerArray(instances);
        }

        @Override
        public void run(int instance, List<InferenceJob> jobs, BatchCloseReason cut) {
            if (!busy.compareAndSet(instance, 0, 1)) {
                wrong.add("instance " + instance + " is used twice");
            }
            int rows = jobs.stream().mapToInt(InferenceJob::batchSize).sum();
            if (rows > maxBatch || jobs.isEmpty()) {
                wrong.add("a batch of " + rows);
            }
            synchronized (begun) {
                jobs.forEach(j -> begun.add(Puppet.number(j)));
            }
            during.run();
            busy.set(instance, 0);
            for (InferenceJob job : jobs) {
                job.complete(List.of(), Map.of());
            }
        }

        @Override
        public boolean joinable(InferenceJob a, InferenceJob b) {
            return shape(a) == shape(b);
        }

        private static int shape(InferenceJob job) {
            return job instanceof FakeJob f ? f.shape : 0;
        }
    }
}
