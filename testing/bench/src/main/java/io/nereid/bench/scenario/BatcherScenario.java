// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import com.sun.management.OperatingSystemMXBean;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.factory.SchedulerFactory;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelRef;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.Tensor;
import java.lang.management.ManagementFactory;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The overhead of the dynamic batcher, in process, with a model that completes at once. Measures CPU time per request
 * for 64 closed-loop threads, compared with the same threads over a bare queue; and requests per second of CPU time for
 * an open loop. Stateless.
 */
public final class BatcherScenario implements Scenario {
    private static final int SUBMITTERS = 64;
    private static final int BURST = 64;
    private static final int ROUNDS = 5;
    private static final int WAITING_ROUNDS = 9;
    /** Enough requests that the CPU clock's resolution of 10 ms is a tenth of a microsecond per request. */
    private static final int REQUESTS = 96_000;

    private static final int BURSTS = 30_000;
    private static final InferenceRequest REQUEST = new InferenceRequest(
            ModelRef.latest("m"), "", List.of(), List.of(), Map.of(), Long.MAX_VALUE, System.nanoTime());
    private static final Job STOP = new Job(null, null);

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws InterruptedException {
        ModelConfig config = ModelConfig.builder("m")
                .maxBatchSize(32)
                .batching(DynamicBatching.EAGER)
                .instances(1)
                .build();
        try (DeviceExecutor pool = new DeviceExecutor("bench", 1);
                Scheduler batcher = SchedulerFactory.create(
                        config, new AtOnce(), pool, new SchedulerOptions(10_000, InlinePolicy.NEVER));
                Scheduler inline = SchedulerFactory.create(
                        config, new AtOnce(), pool, new SchedulerOptions(10_000, InlinePolicy.ALWAYS))) {
            return List.of(
                    waiting(setting, batcher),
                    flood(setting, "scheduler, no-op backend, bursts of 64 through the pool", batcher),
                    flood(setting, "scheduler, no-op backend, on the caller's thread", inline));
        }
    }

    private static BenchmarkResult waiting(BenchmarkSettings setting, Scheduler batcher) throws InterruptedException {
        double[] bare = new double[WAITING_ROUNDS];
        double[] ours = new double[WAITING_ROUNDS];
        double[] differences = new double[WAITING_ROUNDS];
        for (int round = -2; round < WAITING_ROUNDS; round++) {
            LinkedBlockingQueue<Job> queue = new LinkedBlockingQueue<>();
            Threads.named("bare").newThread(() -> drain(queue)).start();
            double queued = perRequest(queue::add);
            queue.add(STOP);
            double batched = perRequest(batcher::submit);
            if (round >= 0) {
                bare[round] = queued;
                ours[round] = batched;
                differences[round] = batched - queued;
            }
        }
        // The median of paired differences, measured back to back: the cost of waking threads depends on the machine's
        // load.
        double more = BenchmarkResult.median(differences);
        setting.log(
                "bare queue %.2f us, batcher %.2f us CPU per request",
                BenchmarkResult.median(bare), BenchmarkResult.median(ours));
        return new BenchmarkResult(
                "dynamic batcher, 64 submitters that wait",
                BenchmarkResult.spread(bare, "us CPU/req over a bare queue"),
                BenchmarkResult.spread(ours, "us CPU/req"),
                String.format(Locale.ROOT, "%.2f", BenchmarkResult.median(ours) / BenchmarkResult.median(bare)),
                String.format(Locale.ROOT, "%+.2f us", more),
                "<= 1.5 us more",
                BenchmarkResult.verdict(more <= 1.5));
    }

    private static void drain(LinkedBlockingQueue<Job> queue) {
        try {
            for (Job job = queue.take(); job != STOP; job = queue.take()) {
                job.complete(List.of(), Map.of());
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    /** Returns the process's CPU time per request of the closed-loop threads, in microseconds. */
    private static double perRequest(Consumer<Job> submit) throws InterruptedException {
        CountDownLatch done = new CountDownLatch(SUBMITTERS);
        long from = cpuNanos();
        for (int t = 0; t < SUBMITTERS; t++) {
            Threads.named("submitter")
                    .newThread(() -> {
                        for (int i = 0; i < REQUESTS / SUBMITTERS; i++) {
                            Job job = new Job(Thread.currentThread(), null);
                            submit.accept(job);
                            while (!job.ended) {
                                LockSupport.park(job);
                            }
                        }
                        done.countDown();
                    })
                    .start();
        }
        done.await();
        return (cpuNanos() - from) / 1e3 / REQUESTS;
    }

    private static BenchmarkResult flood(BenchmarkSettings setting, String work, Scheduler scheduler)
            throws InterruptedException {
        double[] millions = new double[ROUNDS];
        for (int round = -1; round < ROUNDS; round++) {
            long from = cpuNanos();
            for (int b = 0; b < BURSTS; b++) {
                CountDownLatch done = new CountDownLatch(BURST);
                for (int i = 0; i < BURST; i++) {
                    scheduler.submit(new Job(null, done));
                }
                done.await();
            }
            if (round >= 0) {
                millions[round] = BURSTS * (double) BURST * 1e3 / (cpuNanos() - from);
            }
        }
        setting.log("%s: %.2f million requests per second of processor time", work, BenchmarkResult.median(millions));
        return new BenchmarkResult(
                work,
                "",
                BenchmarkResult.spread(millions, "M req/s per core"),
                "",
                "",
                ">= 1 M req/s per core",
                BenchmarkResult.verdict(BenchmarkResult.median(millions) >= 1));
    }

    private static long cpuNanos() {
        return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
    }

    /** Completes every job without outputs. Stateless. */
    private static final class AtOnce implements BatchRunner {
        @Override
        public void run(int instance, List<InferenceJob> jobs, BatchCloseReason cut) {
            for (InferenceJob job : jobs) {
                job.complete(List.of(), Map.of());
            }
        }

        @Override
        public boolean joinable(InferenceJob a, InferenceJob b) {
            return true;
        }
    }

    /** A job of one row. Confined to the thread that owns it, except for its completion. */
    private static final class Job implements InferenceJob {
        volatile boolean ended;
        private final @Nullable Thread waits;
        private final @Nullable CountDownLatch done;

        Job(@Nullable Thread waits, @Nullable CountDownLatch done) {
            this.waits = waits;
            this.done = done;
        }

        @Override
        public InferenceRequest request() {
            return REQUEST;
        }

        @Override
        public int batchSize() {
            return 1;
        }

        @Override
        public void respond(List<Tensor> outputs, Map<String, Object> parameters) {
            throw new UnsupportedOperationException();
        }

        @Override
        public void complete(List<Tensor> outputs, Map<String, Object> parameters) {
            ended = true;
            if (waits != null) {
                LockSupport.unpark(waits);
            }
            if (done != null) {
                done.countDown();
            }
        }

        @Override
        public void fail(ServingException e) {
            complete(List.of(), Map.of());
        }
    }
}
