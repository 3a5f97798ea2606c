// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.execution;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.FakeJob;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.factory.SchedulerFactory;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.InstanceGroup.Kind;
import io.nereid.spi.config.InstanceGroup.Resource;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.QueuePolicy;
import io.nereid.spi.config.QueuePolicy.TimeoutAction;
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
import org.junit.jupiter.api.Test;

/** Concurrent submission to models that share rate limiter resources and change their number of instances. */
class RateLimiterConcurrencyTest {
    private static final int JOBS = 3_000;
    private static final int TOTAL = 3;

    private final AtomicInteger used = new AtomicInteger();
    private final ConcurrentLinkedQueue<String> wrong = new ConcurrentLinkedQueue<>();

    @Test
    void losesNothingAndOversubscribesNothingBetweenRealThreads() throws Exception {
        RateLimiter limiter = new RateLimiter(List.of(RateLimiter.Total.parse("R:" + TOTAL)));
        try (DeviceExecutor pool = new DeviceExecutor("storm", 3)) {
            List<Model> models = new ArrayList<>();
            for (int need = 1; need <= 3; need++) {
                models.add(new Model(need, limiter, pool));
            }
            CountDownLatch done = new CountDownLatch(models.size());
            for (Model m : models) {
                Threads.named("submit").newThread(() -> m.life(done)).start();
            }
            assertThat(done.await(60, TimeUnit.SECONDS)).isTrue();
            for (Model m : models) {
                m.scheduler.drained().toCompletableFuture().get(30, TimeUnit.SECONDS);
            }
            long deadline = Clock.system().nanos() + 5_000_000_000L;
            for (Model m : models) {
                // Ends on other threads (timer, canceller) may lag behind the queue by a moment.
                while (m.taken.stream().anyMatch(j -> j.ends.get() == 0)
                        && Clock.system().nanos() - deadline < 0) {
                    Thread.onSpinWait();
                }
                assertThat(m.taken).allMatch(j -> j.ends.get() == 1);
                assertThat(m.taken.size() + m.rejected).isEqualTo(JOBS);
            }
            assertThat(wrong).isEmpty();
            // A grant that arrived at an empty queue is being returned on the thread of the limiter's caller.
            while (limiter.used("R", 0) != 0 && Clock.system().nanos() - deadline < 0) {
                Thread.onSpinWait();
            }
            assertThat(limiter.used("R", 0)).isZero();
        }
    }

    /** A model and the one thread that submits to it. Its runs may execute on several threads. */
    private final class Model implements BatchRunner {
        final Scheduler scheduler;
        final List<FakeJob> taken = new ArrayList<>();
        volatile int rejected;
        private final int need;
        private final AtomicIntegerArray busy = new AtomicIntegerArray(4);

        Model(int need, RateLimiter limiter, DeviceExecutor pool) {
            this.need = need;
            InstanceGroup group = new InstanceGroup(
                    "m", Kind.CPU, 2, List.of(), false, "", List.of(new Resource("R", false, need)), need);
            TimeoutAction action = need == 1 ? TimeoutAction.DELAY : TimeoutAction.REJECT;
            ModelConfig config = ModelConfig.builder("m" + need)
                    .maxBatchSize(need)
                    .queue(new QueuePolicy(0, Duration.ofNanos(500_000), true, action))
                    .batching(new DynamicBatching(List.of(), Duration.ofNanos(20_000), need == 2, 0, 0, Map.of()))
                    .instanceGroups(List.of(group))
                    .build();
            scheduler = SchedulerFactory.create(
                    config, this, pool, new SchedulerOptions(200, InlinePolicy.MEASURED).withLimiter(limiter));
        }

        void life(CountDownLatch done) {
            try {
                Random random = new Random(need);
                int lost = 0;
                for (int i = 0; i < JOBS; i++) {
                    FakeJob job = FakeJob.of(i).timeout(random.nextInt(2) * 100_000L);
                    try {
                        scheduler.submit(job);
                        taken.add(job);
                    } catch (ServingException e) {
                        lost++;
                    }
                    if (random.nextInt(10) == 0) {
                        job.cancel();
                    }
                    if (random.nextInt(50) == 0) {
                        scheduler.instances(1 + random.nextInt(4));
                    }
                }
                rejected = lost;
            } catch (Throwable t) {
                wrong.add(t.toString());
            } finally {
                scheduler.close();
                done.countDown();
            }
        }

        @Override
        public void run(int instance, List<InferenceJob> jobs, BatchCloseReason cut) {
            if (!busy.compareAndSet(instance, 0, 1)) {
                wrong.add("instance " + instance + " is used twice");
            }
            if (used.addAndGet(need) > TOTAL) {
                wrong.add("too much is in use");
            }
            Thread.onSpinWait();
            used.addAndGet(-need);
            busy.set(instance, 0);
            jobs.forEach(j -> j.complete(List.of(), Map.of()));
        }

        @Override
        public void retired(int instance) {
            if (!busy.compareAndSet(instance, 0, 1)) {
                wrong.add("instance " + instance + " is retired during a run");
            }
            busy.set(instance, 0);
        }

        @Override
        public boolean joinable(InferenceJob a, InferenceJob b) {
            return true;
        }
    }
}
