// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import static org.openjdk.jcstress.annotations.Expect.ACCEPTABLE;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.base.Timer;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.execution.RateLimiter;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.InstanceGroup.Resource;
import io.nereid.spi.config.ModelConfig;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.openjdk.jcstress.annotations.Actor;
import org.openjdk.jcstress.annotations.Arbiter;
import org.openjdk.jcstress.annotations.JCStressTest;
import org.openjdk.jcstress.annotations.Outcome;
import org.openjdk.jcstress.annotations.State;
import org.openjdk.jcstress.infra.results.IIII_Result;
import org.openjdk.jcstress.infra.results.III_Result;

/**
 * {@link DynamicBatcher}: every accepted job ends once, no instance runs two batches at once, and no job stays in the
 * queue while an instance is free. The pool has no threads: the actors take its entries, and after them the arbiter
 * takes what is enlisted. A job that is still queued then was forgotten.
 */
public final class DynamicBatcherStress {
    private static final Clock STILL = new Clock() {
        @Override
        public long nanos() {
            return 0;
        }

        @Override
        public long millis() {
            return 0;
        }
    };

    private static final Timer NO_TIMER = new Timer() {
        @Override
        public ScheduledTask after(long nanos, Runnable task) {
            return () -> {};
        }

        @Override
        public void close() {}
    };

    private static final ModelConfig ONE = config(1, 1);
    private static final ModelConfig ORDERED = config(2, 1).toBuilder()
            .batching(new DynamicBatching(List.of(), Duration.ZERO, true))
            .build();
    private static final ModelConfig BATCHED = config(1, 2);
    private static final ModelConfig LIMITED = ModelConfig.builder("m")
            .instanceGroups(List.of(new InstanceGroup(
                    "m", InstanceGroup.Kind.CPU, 1, List.of(), false, "", List.of(new Resource("R", false, 1)), 1)))
            .build();

    private DynamicBatcherStress() {}

    private static ModelConfig config(int instances, int batch) {
        return ModelConfig.builder("m")
                .maxBatchSize(batch > 1 ? batch : 0)
                .batching(DynamicBatching.EAGER)
                .instanceGroups(List.of(InstanceGroup.cpu("m", instances)))
                .build();
    }

    private static SchedulerOptions options(InlinePolicy inline) {
        return new SchedulerOptions(100, inline);
    }

    /** A pool, and the runs of its models. Confined to the instance of a test. */
    public static class Pool implements BatchRunner {
        final DeviceExecutor pool = new DeviceExecutor("stress", 0, STILL, NO_TIMER);
        final AtomicInteger order = new AtomicInteger();
        private final AtomicInteger running = new AtomicInteger();
        private final AtomicInteger first = new AtomicInteger();
        private final AtomicInteger second = new AtomicInteger();

        /** The largest number of concurrent runs; 9 after two runs of one instance at once; 8 after a large batch. */
        volatile int most;

        @Override
        public void run(int instance, List<InferenceJob> jobs, BatchCloseReason reason) {
            int now = running.incrementAndGet();
            if (now > most) {
                most = now;
            }
            AtomicInteger user = instance == 0 ? first : second;
            if (user.incrementAndGet() > 1) {
                most = 9;
            }
            if (jobs.size() > 2) {
                most = 8;
            }
            for (InferenceJob job : jobs) {
                job.complete(List.of(), Map.of());
            }
            user.decrementAndGet();
            running.decrementAndGet();
        }

        @Override
        public boolean joinable(InferenceJob a, InferenceJob b) {
            return true;
        }

        DynamicBatcher queue(ModelConfig config, SchedulerOptions options) {
            return new DynamicBatcher(config, this, pool, options);
        }

        StressJob job() {
            return new StressJob(order);
        }

        void runAll() {
            while (pool.runNext()) {
                // until no queue is enlisted
            }
        }

        /** Submits a job; returns 1 when the queue rejects it, else 0. */
        static int submit(DynamicBatcher queue, StressJob job) {
            try {
                queue.submit(job);
                return 0;
            } catch (ServingException e) {
                return 1;
            }
        }
    }

    /** Two jobs are submitted to one instance and run by the threads of the pool. */
    @JCStressTest
    @Outcome(id = "1, 1, 1, 0", expect = ACCEPTABLE, desc = "Both ran, one after the other.")
    @State
    public static class TwoSubmissions extends Pool {
        private final DynamicBatcher queue = queue(ONE, options(InlinePolicy.NEVER));
        private final StressJob a = job();
        private final StressJob b = job();

        @Actor
        public void one() {
            queue.submit(a);
            runAll();
        }

        @Actor
        public void two() {
            queue.submit(b);
            runAll();
        }

        @Arbiter
        public void end(IIII_Result r) {
            runAll();
            r.r1 = a.ends.get();
            r.r2 = b.ends.get();
            r.r3 = most;
            r.r4 = queue.queued() + queue.running();
        }
    }

    /** Two jobs are submitted to one instance of a tiny model, which submitting threads run if it is free. */
    @JCStressTest
    @Outcome(id = "1, 1, 1, 0", expect = ACCEPTABLE, desc = "Both ran, one after the other.")
    @State
    public static class InlineRuns extends Pool {
        private final DynamicBatcher queue = queue(ONE, options(InlinePolicy.ALWAYS));
        private final StressJob a = job();
        private final StressJob b = job();

        @Actor
        public void one() {
            queue.submit(a);
        }

        @Actor
        public void two() {
            queue.submit(b);
        }

        @Arbiter
        public void end(IIII_Result r) {
            runAll();
            r.r1 = a.ends.get();
            r.r2 = b.ends.get();
            r.r3 = most;
            r.r4 = queue.queued() + queue.running();
        }
    }

    /** Three jobs of a batched model. */
    @JCStressTest
    @Outcome(id = "3, 1, 0", expect = ACCEPTABLE, desc = "All ran, in batches of at most two.")
    @State
    public static class Batches extends Pool {
        private final DynamicBatcher queue = queue(BATCHED, options(InlinePolicy.NEVER));
        private final StressJob a = job();
        private final StressJob b = job();
        private final StressJob c = job();

        @Actor
        public void one() {
            queue.submit(a);
            runAll();
        }

        @Actor
        public void two() {
            queue.submit(b);
            queue.submit(c);
            runAll();
        }

        @Arbiter
        public void end(III_Result r) {
            runAll();
            r.r1 = a.ends.get() + b.ends.get() + c.ends.get();
            r.r2 = most;
            r.r3 = queue.queued() + queue.running();
        }
    }

    /** The client cancels a job while it is submitted and run. */
    @JCStressTest
    @Outcome(id = "0, 1, 1, 0", expect = ACCEPTABLE, desc = "It ran.")
    @Outcome(id = "0, 1, 0, 0", expect = ACCEPTABLE, desc = "It was cancelled in the queue or before its run.")
    @Outcome(id = "1, 0, 0, 0", expect = ACCEPTABLE, desc = "It was rejected.")
    @State
    public static class SubmitAndCancel extends Pool {
        private final DynamicBatcher queue = queue(ONE, options(InlinePolicy.NEVER));
        private final StressJob job = job();

        @Actor
        public void one(IIII_Result r) {
            r.r1 = submit(queue, job);
            runAll();
        }

        @Actor
        public void two() {
            job.cancel();
        }

        @Arbiter
        public void end(IIII_Result r) {
            runAll();
            r.r2 = job.ends.get();
            r.r3 = job.place;
            r.r4 = queue.queued() + queue.running();
        }
    }

    /** The client cancels a queued job while threads of the pool take it and the one after it. */
    @JCStressTest
    @Outcome(id = "1, 1, 0", expect = ACCEPTABLE, desc = "Both ended once.")
    @State
    public static class RunAndCancel extends Pool {
        private final DynamicBatcher queue = queue(ONE, options(InlinePolicy.NEVER));
        private final StressJob a = job();
        private final StressJob b = job();

        public RunAndCancel() {
            queue.submit(a);
            queue.submit(b);
        }

        @Actor
        public void one() {
            runAll();
        }

        @Actor
        public void two() {
            a.cancel();
        }

        @Arbiter
        public void end(III_Result r) {
            runAll();
            r.r1 = a.ends.get();
            r.r2 = b.ends.get() == 1 && b.place > 0 ? 1 : 2;
            r.r3 = queue.queued() + queue.running();
        }
    }

    /** A job is submitted while the queue is closed. */
    @JCStressTest
    @Outcome(id = "0, 1, 1, 0", expect = ACCEPTABLE, desc = "Accepted, and run before the queue was drained.")
    @Outcome(id = "1, 0, 1, 0", expect = ACCEPTABLE, desc = "Rejected.")
    @State
    public static class SubmitAndClose extends Pool {
        private final DynamicBatcher queue = queue(ONE, options(InlinePolicy.NEVER));
        private final StressJob job = job();

        @Actor
        public void one(IIII_Result r) {
            r.r1 = submit(queue, job);
            runAll();
        }

        @Actor
        public void two() {
            queue.close();
        }

        @Arbiter
        public void end(IIII_Result r) {
            runAll();
            r.r2 = job.ends.get();
            r.r3 = queue.drained().toCompletableFuture().isDone() ? 1 : 0;
            r.r4 = queue.queued() + queue.running();
        }
    }

    /** A job is submitted while the pool is closed. */
    @JCStressTest
    @Outcome(id = "0, 1, 0", expect = ACCEPTABLE, desc = "It ran, or failed in the queue.")
    @Outcome(id = "1, 0, 0", expect = ACCEPTABLE, desc = "Rejected.")
    @State
    public static class SubmitAndClosePool extends Pool {
        private final DynamicBatcher queue = queue(ONE, options(InlinePolicy.NEVER));
        private final StressJob job = job();

        @Actor
        public void one(III_Result r) {
            r.r1 = submit(queue, job);
        }

        @Actor
        public void two() {
            pool.close();
            runAll();
        }

        @Arbiter
        public void end(III_Result r) {
            runAll();
            r.r2 = job.ends.get();
            r.r3 = queue.queued() + queue.running();
        }
    }

    /** The number of instances grows and shrinks while three jobs run. */
    @JCStressTest
    @Outcome(id = "3, 1, 0", expect = ACCEPTABLE, desc = "All ran, one after the other.")
    @Outcome(id = "3, 2, 0", expect = ACCEPTABLE, desc = "All ran, at most two at once.")
    @State
    public static class Resize extends Pool {
        private final DynamicBatcher queue = queue(ONE, options(InlinePolicy.NEVER));
        private final StressJob a = job();
        private final StressJob b = job();
        private final StressJob c = job();

        public Resize() {
            queue.submit(a);
            queue.submit(b);
            queue.submit(c);
        }

        @Actor
        public void one() {
            queue.instances(2);
            runAll();
            queue.instances(1);
        }

        @Actor
        public void two() {
            runAll();
        }

        @Arbiter
        public void end(III_Result r) {
            runAll();
            r.r1 = a.ends.get() + b.ends.get() + c.ends.get();
            r.r2 = most;
            r.r3 = queue.queued() + queue.running();
        }
    }

    /** Two instances run two jobs whose responses must be in the order of the requests. */
    @JCStressTest
    @Outcome(id = "1, 2, 0", expect = ACCEPTABLE, desc = "In order.")
    @State
    public static class OrderedResponses extends Pool {
        private final DynamicBatcher queue = queue(ORDERED, options(InlinePolicy.NEVER));
        private final StressJob a = job();
        private final StressJob b = job();

        public OrderedResponses() {
            queue.submit(a);
            queue.submit(b);
        }

        @Actor
        public void one() {
            var unused = pool.runNext();
        }

        @Actor
        public void two() {
            var unused = pool.runNext();
        }

        @Arbiter
        public void end(III_Result r) {
            runAll();
            r.r1 = a.place;
            r.r2 = b.place;
            r.r3 = queue.queued() + queue.running();
        }
    }

    /** Two models share a resource of which there is one unit. */
    @JCStressTest
    @Outcome(id = "1, 1, 1, 0", expect = ACCEPTABLE, desc = "Both ran, one after the other, and returned the unit.")
    @State
    public static class SharedResource extends Pool {
        private final RateLimiter limiter = new RateLimiter(List.of(RateLimiter.Total.parse("R:1")));
        private final DynamicBatcher left =
                queue(LIMITED, options(InlinePolicy.NEVER).withLimiter(limiter));
        private final DynamicBatcher right =
                queue(LIMITED, options(InlinePolicy.NEVER).withLimiter(limiter));
        private final StressJob a = job();
        private final StressJob b = job();
        private final AtomicInteger together = new AtomicInteger();
        private volatile boolean shared;

        @Override
        public void run(int instance, List<InferenceJob> jobs, BatchCloseReason reason) {
            if (together.incrementAndGet() > 1) {
                shared = true;
            }
            jobs.forEach(job -> job.complete(List.of(), Map.of()));
            together.decrementAndGet();
        }

        @Actor
        public void one() {
            left.submit(a);
            runAll();
        }

        @Actor
        public void two() {
            right.submit(b);
            runAll();
        }

        @Arbiter
        public void end(IIII_Result r) {
            runAll();
            r.r1 = a.ends.get();
            r.r2 = b.ends.get();
            r.r3 = shared ? 2 : 1;
            StressJob next = job();
            left.submit(next);
            runAll();
            int unreturned = next.ends.get() == 1 ? 0 : 1;
            r.r4 = unreturned + left.queued() + right.queued() + left.running() + right.running();
        }
    }
}
