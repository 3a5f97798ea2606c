// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.RecordingModelRequest;
import java.io.IOException;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** What a run costs that does not depend on the machine: frames, and threads that wake up. */
class RunCostTest {
    private static final int RUNS = 200;
    private static final Path THREADS = Path.of("/proc/self/task");

    @TempDir
    Path directory;

    @BeforeAll
    static void python() {
        Interpreter.assumePython();
    }

    private BackendModel load() {
        return new PythonBackend()
                .load(
                        Fixtures.copied("messages", directory),
                        ModelConfig.unspecified("messages"),
                        new BackendContext(1, directory, Map.of("python", Interpreter.path())));
    }

    /** Runs one request: the frames that the worker had received before it ran, sent, and sent as results. */
    private static long[] run(ModelInstance instance) {
        Tensor in = Tensor.allocate("IN", DataType.INT64, Shape.of(4));
        try (RecordingModelRequest request = new RecordingModelRequest(List.of(in), List.of("OUT"))) {
            instance.execute(List.of(request));
            assertThat(request.ends()).containsExactly("complete");
            long[] counts = new long[3];
            request.answers()
                    .get(0)
                    .outputs()
                    .get(0)
                    .buffer()
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .asLongBuffer()
                    .get(counts);
            return counts;
        }
    }

    @Test
    void aRunIsOneFrameToTheWorkerAndOneResult() {
        try (BackendModel model = load();
                ModelInstance instance = model.newInstance()) {
            run(instance);
            long[] before = run(instance);
            for (int i = 0; i < RUNS - 1; i++) {
                run(instance);
            }
            long[] after = run(instance);
            assertThat(after[0] - before[0]).as("frames received").isEqualTo(RUNS);
            assertThat(after[1] - before[1]).as("frames sent").isEqualTo(RUNS);
            assertThat(after[2] - before[2]).as("results among them").isEqualTo(RUNS);
        }
    }

    @Test
    void aRunWakesNoThreadOfTheServerButTheOneThatWaitsForIt() throws Exception {
        assumeTrue(Files.isDirectory(THREADS), "needs the counters of Linux");
        try (BackendModel model = load();
                ModelInstance instance = model.newInstance()) {
            run(instance);
            run(instance);
            long before = wakeUps();
            for (int i = 0; i < RUNS; i++) {
                run(instance);
            }
            // Nothing else is sent, so a thread of the worker wakes up only where a run does it: once for each, at
            // least.
            assertThat(wakeUps() - before).isLessThan(RUNS / 2);
        }
    }

    /** How often the threads that read from and write to workers have gone to sleep, which is once for each wake-up. */
    private static long wakeUps() throws IOException {
        long sum = 0;
        try (Stream<Path> threads = Files.list(THREADS)) {
            for (Path thread : threads.toList()) {
                String name = Files.readString(thread.resolve("comm"));
                if (name.startsWith("python-reader") || name.startsWith("python-writer")) {
                    sum += Files.readAllLines(thread.resolve("status")).stream()
                            .filter(line -> line.startsWith("voluntary_ctxt_switches:"))
                            .mapToLong(line -> Long.parseLong(
                                    line.substring(line.indexOf(':') + 1).strip()))
                            .sum();
                }
            }
        }
        return sum;
    }
}
