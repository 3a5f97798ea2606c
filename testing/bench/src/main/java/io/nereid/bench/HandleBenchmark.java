// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench;

import io.nereid.base.Clock;
import io.nereid.lifecycle.Manager;
import io.nereid.lifecycle.ManagerOptions;
import io.nereid.lifecycle.ServableHandle;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.Loader;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableId;
import io.nereid.spi.Source;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Fork;
import org.openjdk.jmh.annotations.Measurement;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.Setup;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.TearDown;
import org.openjdk.jmh.annotations.Threads;
import org.openjdk.jmh.annotations.Warmup;

/** Taking and giving back the right to use a version, which every request does once. */
@State(Scope.Benchmark)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Fork(1)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 5, time = 1)
@SuppressWarnings("NullAway.Init") // set by prepare
public class HandleBenchmark {
    private static final ModelRef LATEST = ModelRef.latest("m");

    private Manager manager;

    /** Makes a manager with one version available. */
    @Setup
    public void prepare() {
        manager = new Manager(ManagerOptions.DEFAULT, Clock.system());
        manager.aspire("m", List.of(Source.Aspired.of(new Nothing(new ServableId("m", 1)))));
        manager.settled("m").toCompletableFuture().join();
    }

    /** Ends it. */
    @TearDown
    public void end() {
        manager.close();
    }

    /** From one thread. */
    @Benchmark
    public Servable alone() {
        try (ServableHandle handle = manager.acquire(LATEST)) {
            return handle.servable();
        }
    }

    /** From every processor at once. */
    @Benchmark
    @Threads(Threads.MAX)
    public Servable together() {
        try (ServableHandle handle = manager.acquire(LATEST)) {
            return handle.servable();
        }
    }

    /** A version that does nothing, and its loader. Immutable. */
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
