// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.jmh;

import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchCloseReason;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.InlinePolicy;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.batcher.DynamicBatcher;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelRef;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OperationsPerInvocation;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Warmup;

/** The cost of the batcher's queue: a job's path through the batcher to a runner that completes at once. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@SuppressWarnings("NullAway.Init") // set by prepare
public class BatcherBenchmark {
    private static final int BURST = 64;
    private static final InferenceRequest REQUEST = new InferenceRequest(
            ModelRef.latest("m"), "", List.of(), List.of(), Map.of(), Long.MAX_VALUE, System.nanoTime());

    private DeviceExecutor pool;
    private Scheduler inline;
    private Scheduler pooled;

    /** Creates a batcher that runs on the caller's thread, and one that never does. */
    @Setup
    public void prepare() {
        ModelConfig config = ModelConfig.unspecified("m")
                .completed("none", "none", 32, List.of(), List.of(), DynamicBatching.EAGER, 1);
        pool = new DeviceExecutor("bench", 1);
        inline = new DynamicBatcher(config, new AtOnce(), pool, new SchedulerOptions(10_000, InlinePolicy.ALWAYS));
        pooled = new DynamicBatcher(config, new AtOnce(), pool, new SchedulerOptions(10_000, InlinePolicy.NEVER));
    }

    /** Closes the batchers. */
    @TearDown
    public void end() {
        inline.close();
        pooled.close();
        pool.close();
    }

    /** One job, run on the thread that submits it. */
    @Benchmark
    public CountDownLatch onTheCallersThread() {
        CountDownLatch done = new CountDownLatch(1);
        inline.submit(new Job(done));
        return done;
    }

    /** A burst of jobs, batched on the device's thread; the score is the cost of one job. */
    @Benchmark
    @OperationsPerInvocation(BURST)
    public void burstInBatches() throws InterruptedException {
        CountDownLatch done = new CountDownLatch(BURST);
        for (int i = 0; i < BURST; i++) {
            pooled.submit(new Job(done));
        }
        done.await();
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

    /** A job of one row. Confined to the thread that owns it. */
    private static final class Job implements InferenceJob {
        private final CountDownLatch done;

        Job(CountDownLatch done) {
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
            done.countDown();
        }

        @Override
        public void fail(ServingException e) {
            done.countDown();
        }
    }
}
