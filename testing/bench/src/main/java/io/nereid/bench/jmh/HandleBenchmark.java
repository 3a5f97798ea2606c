// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.jmh;

import io.nereid.base.Clock;
import io.nereid.lifecycle.ManagerOptions;
import io.nereid.lifecycle.ServableHandle;
import io.nereid.lifecycle.ServableManager;
import io.nereid.spi.AspiredVersion;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.Loader;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.management.VersionLabel;
import io.nereid.spi.management.WeightedVersion;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.locks.LockSupport;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Param;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Threads;
import org.openjdk.jmh.annotations.Warmup;

/**
 * Acquiring and releasing a handle to a model version, which every request does once; without and with constant version
 * transitions. The target is 10 million per second and CPU, that is 100 ns, in both cases.
 */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@SuppressWarnings("NullAway.Init") // set by prepare
public class HandleBenchmark {
    private static final ModelRef LATEST = ModelRef.latest("m");

    private static final ModelRef CANARY = new ModelRef("m", ModelRef.ANY, "canary");

    /** Version transitions per second. */
    @Param({"0", "1000"})
    public int transitionsPerSecond;

    private final AtomicBoolean stop = new AtomicBoolean();
    private ServableManager manager;
    private Thread churner;
    private long transitions;

    /** Creates a manager with two available versions, the higher of which is replaced continuously. */
    @Setup
    public void prepare() {
        manager = new ServableManager(ManagerOptions.DEFAULT.withLoadNiceness(0), Clock.system());
        aspire(2);
        manager.labels(
                "m",
                Map.of(
                        "canary",
                        new VersionLabel(List.of(new WeightedVersion(1, 9), new WeightedVersion(2, 1)), List.of())));
        churner = io.nereid.base.Threads.named("churn").newThread(this::churn);
        if (transitionsPerSecond > 0) {
            churner.start();
        }
    }

    private void aspire(long highest) {
        manager.aspire(
                "m",
                List.of(
                        AspiredVersion.of(new Nothing(new ServableId("m", 1))),
                        AspiredVersion.of(new Nothing(new ServableId("m", highest)))));
        manager.settled("m").toCompletableFuture().join();
    }

    private void churn() {
        while (!stop.get()) {
            LockSupport.parkNanos(1_000_000_000L / transitionsPerSecond);
            aspire(2 + ++transitions % 1_000);
        }
    }

    /** Closes the manager. */
    @TearDown
    public void end() throws InterruptedException {
        stop.set(true);
        churner.join();
        System.out.println("transitions: " + transitions);
        manager.close();
    }

    /** From one thread. */
    @Benchmark
    public Servable alone() {
        try (ServableHandle handle = manager.acquire(LATEST)) {
            return handle.servable();
        }
    }

    /** From all CPUs in parallel. */
    @Benchmark
    @Threads(Threads.MAX)
    public Servable together() {
        try (ServableHandle handle = manager.acquire(LATEST)) {
            return handle.servable();
        }
    }

    /** Through a label that splits its traffic over two versions. */
    @Benchmark
    public Servable labelled() {
        try (ServableHandle handle = manager.acquire(CANARY)) {
            return handle.servable();
        }
    }

    /** A no-op servable and its loader. Immutable. */
    private record Nothing(ServableId id) implements Loader, Servable {
        @Override
        public String fingerprint() {
            return "";
        }

        @Override
        public String backend() {
            return "none";
        }

        @Override
        public long estimateBytes() {
            return 0;
        }

        @Override
        public Servable load() {
            return this;
        }

        @Override
        public void warm() {}

        @Override
        public void unload() {}

        @Override
        public ModelMetadata metadata() {
            return new ModelMetadata(id, "none", List.of(), List.of(), 0, Map.of());
        }

        @Override
        public ModelConfig config() {
            return ModelConfig.unspecified(id.model());
        }

        @Override
        public long memoryBytes() {
            return 0;
        }

        @Override
        public void submit(InferenceJob job) {
            throw new UnsupportedOperationException();
        }
    }
}
