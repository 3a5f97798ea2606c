// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import static org.assertj.core.api.Assertions.assertThat;

import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.base.Clock;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Time passes only where a test says so; sessions are those of ONNX Runtime. */
class WideRunsTest {
    private static final long SLOW = 10_000_000;

    @TempDir
    Path directory;

    private final AtomicLong now = new AtomicLong();
    private final Clock clock = new Clock() {
        @Override
        public long nanos() {
            return now.get();
        }

        @Override
        public long millis() {
            return now.get() / 1_000_000;
        }
    };
    private final AtomicInteger opened = new AtomicInteger();
    private final CompletableFuture<@Nullable OnnxSession> second = new CompletableFuture<>();
    private OnnxSession narrow;

    @BeforeEach
    void open() throws Exception {
        narrow = session();
    }

    @AfterEach
    void close() {
        narrow.drop();
    }

    private OnnxSession session() throws OrtException {
        ModelLocation source = new Fixtures(directory).source("identity_fp32");
        OrtRuntime runtime = OrtRuntime.start(OrtLibrary.ofUser());
        assertThat(runtime.environment()).isSameAs(OrtEnvironment.getEnvironment());
        return OnnxSession.open(
                "m",
                runtime,
                source.versionDirectory().resolve("model.onnx"),
                OrtSettings.read(Map.of(), 2),
                ExecutionProviders.CPU);
    }

    private WideRuns wideRuns(Callable<@Nullable OnnxSession> opener) {
        return new WideRuns(
                "m",
                2,
                1,
                () -> {
                    opened.incrementAndGet();
                    OnnxSession session = null;
                    try {
                        session = opener.call();
                        return session;
                    } finally {
                        second.complete(session);
                    }
                },
                clock);
    }

    /** Runs once on an idle machine; returns the session, or null when the run was not considered. */
    private @Nullable OnnxSession run(WideRuns wide, int idle, long narrowNanos, long wideNanos) {
        if (!wide.considers(idle)) {
            return null;
        }
        List<OnnxSession> used = new ArrayList<>();
        wide.run(narrow, List.of(), session -> {
            used.add(session);
            now.addAndGet(session == narrow ? narrowNanos : wideNanos);
            return List.of();
        });
        assertThat(used).hasSize(1);
        return used.get(0);
    }

    /** Runs until the second session is open. */
    private OnnxSession opened(WideRuns wide) throws Exception {
        for (int i = 0; i < WideRuns.RUNS; i++) {
            assertThat(wide.isOpen()).isFalse();
            assertThat(run(wide, 1, SLOW, 0)).isSameAs(narrow);
        }
        OnnxSession session = second.get(30, TimeUnit.SECONDS);
        while (!wide.isOpen()) {
            Thread.onSpinWait();
        }
        return session;
    }

    @Test
    void aSlowModelGetsWideRunsOnAnIdleMachine() throws Exception {
        WideRuns wide = wideRuns(this::session);
        OnnxSession session = opened(wide);
        for (int i = 0; i < WideRuns.RUNS; i++) {
            // in turns, until each kind has been timed often enough
            assertThat(run(wide, 1, SLOW, SLOW / 2)).isSameAs(narrow);
            assertThat(run(wide, 1, SLOW, SLOW / 2)).isSameAs(session);
        }
        for (int i = 0; i < 3; i++) {
            assertThat(run(wide, 1, SLOW, SLOW / 2)).isSameAs(session);
        }
        assertThat(wide.considers(0)).as("a busy machine").isFalse();
        assertThat(wide.isOpen()).isTrue();
        assertThat(opened).hasValue(1);
        wide.close();
        assertThat(wide.isOpen()).isFalse();
        assertThat(wide.considers(1)).isFalse();
    }

    @Test
    void aSessionThatGainsLittleIsClosed() throws Exception {
        WideRuns wide = wideRuns(this::session);
        opened(wide);
        for (int i = 0; i < 2 * WideRuns.RUNS; i++) {
            run(wide, 1, SLOW, SLOW * 9 / 10);
        }
        assertThat(wide.isOpen()).isFalse();
        assertThat(wide.considers(1)).isFalse();
    }

    @Test
    void aFastModelIsOnlyWatchedNowAndThen() {
        WideRuns wide = wideRuns(this::session);
        int considered = 0;
        for (int i = 0; i < 1600; i++) {
            considered += run(wide, 1, WideRuns.WORTH_NANOS / 2, 0) == null ? 0 : 1;
        }
        assertThat(considered).isBetween(100, 110);
        assertThat(opened).hasValue(0);
        // the requests grow
        for (int i = 0; i < 1600 && opened.get() == 0; i++) {
            run(wide, 1, SLOW, 0);
        }
        assertThat(second).succeedsWithin(java.time.Duration.ofSeconds(30));
        wide.close();
    }

    @Test
    void whatCannotBeOpenedIsNotTriedAgain() throws Exception {
        for (Callable<@Nullable OnnxSession> opener : List.<Callable<@Nullable OnnxSession>>of(() -> null, () -> {
            throw new IOException("gone");
        })) {
            WideRuns wide = wideRuns(opener);
            for (int i = 0; i < WideRuns.RUNS; i++) {
                run(wide, 1, SLOW, 0);
            }
            second.get(30, TimeUnit.SECONDS);
            while (wide.considers(1)) {
                Thread.onSpinWait();
            }
            assertThat(wide.isOpen()).isFalse();
        }
    }

    @Test
    void aModelThatIsClosedMeanwhileGetsNoSession() throws Exception {
        CompletableFuture<Void> closed = new CompletableFuture<>();
        WideRuns wide = wideRuns(() -> {
            closed.get();
            return session();
        });
        for (int i = 0; i < WideRuns.RUNS; i++) {
            run(wide, 1, SLOW, 0);
        }
        wide.close();
        closed.complete(null);
        second.get(30, TimeUnit.SECONDS);
        assertThat(wide.isOpen()).isFalse();
    }

    @Test
    void aViewOutlivesTheSessionsClose() throws Exception {
        OnnxSession session = session();
        session.hold();
        session.drop();
        assertThat(session.session().getNumInputs()).isEqualTo(1);
        session.drop();
    }

    @Test
    void configuredThreadsAndScarceMemoryWin() throws Exception {
        assertThat(choice(Map.of(), 2, true)).isNotNull();
        assertThat(choice(Map.of("intra_op_thread_count", "1"), 2, true)).isNull();
        assertThat(choice(Map.of("intra_op_thread_count", "2"), 2, true)).isNull();
        assertThat(choice(Map.of("execution_mode", "1"), 2, true)).isNull();
        assertThat(choice(Map.of(), 1, true)).isNull();
        assertThat(choice(Map.of(), 2, false)).isNull();
    }

    private @Nullable WideRuns choice(Map<String, String> parameters, int cores, boolean spareMemory) throws Exception {
        ModelLocation source = new Fixtures(directory).source("identity_fp32");
        OnnxFile file = OnnxFile.find(source, "");
        return WideRuns.of(
                "m",
                OrtRuntime.start(OrtLibrary.ofUser()),
                file,
                OrtSettings.read(parameters, cores),
                ExecutionProviders.CPU,
                new BackendContext(cores, directory, Map.of()).withSpareMemory(spareMemory));
    }

    @Test
    void aReplacedFileHasAnotherState() throws Exception {
        ModelLocation source = new Fixtures(directory).source("identity_fp32");
        OnnxFile file = OnnxFile.find(source, "");
        String before = file.state();
        assertThat(file.state()).isEqualTo(before);
        Path copy = directory.resolve("copy");
        Files.write(copy, Fixtures.bytes("identity_fp32"));
        Files.setLastModifiedTime(copy, Files.getLastModifiedTime(file.path()));
        Files.move(copy, file.path(), java.nio.file.StandardCopyOption.REPLACE_EXISTING);
        assertThat(file.state()).isNotEqualTo(before);
    }

    @Test
    void answersAreRightWhateverTheMachineDoes() {
        Fixtures fixtures = new Fixtures(directory);
        try (BackendModel model = Fixtures.BACKEND.load(
                fixtures.source("identity_fp32"),
                ModelConfig.unspecified("identity_fp32"),
                fixtures.context(Map.of()).withSpareMemory(true))) {
            String input = model.config().inputs().get(0).name();
            String output = model.config().outputs().get(0).name();
            try (ModelInstance instance = model.newInstance();
                    Tensor tensor = Tensor.allocate(input, DataType.FP32, Shape.of(1, 4))) {
                tensor.buffer().putFloat(8, 2.5f);
                for (int idle = 0; idle < 100; idle++) {
                    List<Tensor> outputs = instance.run(List.of(tensor), List.of(output), idle % 3);
                    assertThat(outputs.get(0).buffer().getFloat(8)).isEqualTo(2.5f);
                    Tensor.closeAll(outputs);
                }
            }
        }
    }
}
