// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.backend.ModelRequest;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceRequest.SequenceFlags;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.RecordingModelRequest;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Worker processes that are killed: which requests fail, and which ones another worker runs. None of it needs numpy. */
@Timeout(60)
class WorkerDeathTest {
    @TempDir
    Path directory;

    @BeforeAll
    static void python() {
        Interpreter.assumePython();
    }

    private BackendModel load(ModelLocation source, ModelConfig config) {
        Map<String, String> settings = new HashMap<>(Map.of("python", Interpreter.path()));
        return new PythonBackend().load(source, config, new BackendContext(2, directory, settings));
    }

    private BackendModel moody(int instances) {
        return load(
                Fixtures.copied("moody", directory),
                ModelConfig.builder("moody").instances(instances).build());
    }

    private Path block() {
        return directory.resolve("block");
    }

    /** The model moody, whose processes do not start while the file {@link #block} exists. */
    private ModelLocation blockable() throws IOException {
        ModelLocation source = Fixtures.copied("moody", directory);
        Path file = source.versionDirectory().resolve("model.py");
        Files.writeString(
                file,
                "import os, sys\nif os.path.exists('" + block() + "'):\n    os._exit(1)\n"
                        + Files.readString(file, StandardCharsets.UTF_8));
        return source;
    }

    private static RecordingModelRequest mood(String mood) {
        return mood(mood, Options.NONE);
    }

    private static RecordingModelRequest mood(String mood, Options options) {
        return new RecordingModelRequest(List.of(MoodyModelTest.text("MOOD", mood)), List.of("SAID"), options);
    }

    private static String said(RecordingModelRequest request) {
        assertThat(request.failure()).isNull();
        assertThat(request.ends()).containsExactly("complete");
        Tensor t = request.answers().get(0).outputs().get(0);
        byte[] bytes = new byte[t.byteLength() - 4];
        t.buffer().position(4).get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private static long pid(ModelInstance instance) {
        try (RecordingModelRequest request = mood("pid")) {
            instance.execute(List.of(request));
            return Long.parseLong(said(request));
        }
    }

    private static void kill(ModelInstance instance) {
        try (RecordingModelRequest request = mood("crash")) {
            instance.execute(List.of(request));
            assertThat(request.failure().getMessage()).contains("ended (signal 9)");
        }
    }

    private static void signal(String signal, long pid) throws Exception {
        assertThat(new ProcessBuilder("kill", "-" + signal, String.valueOf(pid))
                        .start()
                        .waitFor())
                .isZero();
    }

    /** Runs requests on a worker that is stopped, so that it cannot begin them, and then killed. */
    private static void executeOnStopped(ModelInstance instance, List<ModelRequest> requests) throws Exception {
        long pid = pid(instance);
        signal("STOP", pid);
        CompletableFuture<Void> run = new CompletableFuture<>();
        Thread thread = new Thread(() -> {
            try {
                instance.execute(requests);
                run.complete(null);
            } catch (RuntimeException e) {
                run.completeExceptionally(e);
            }
        });
        thread.start();
        while (thread.isAlive()
                && Arrays.stream(thread.getStackTrace())
                        .noneMatch(frame -> frame.getClassName().equals(FrameReader.class.getName()))) {
            Thread.onSpinWait();
        }
        // The thread waits for the result: the frame with the requests is in the socket. The worker has not read it.
        assertThat(run.isDone()).isFalse();
        signal("KILL", pid);
        run.get(30, TimeUnit.SECONDS);
    }

    @Test
    void requestsThatTheProcessHasNotBegunRunOnTheNextOne() throws Exception {
        try (BackendModel model = moody(1);
                ModelInstance instance = model.newInstance();
                RecordingModelRequest one = mood("pid");
                RecordingModelRequest two = mood("pid")) {
            long before = pid(instance);
            executeOnStopped(instance, List.of(one, two));
            assertThat(said(one)).isEqualTo(said(two)).isNotEqualTo(String.valueOf(before));
        }
    }

    @Test
    void aRequestThatTheProcessHasBegunFailsAndIsNotRepeated() throws Exception {
        try (BackendModel model = moody(1);
                ModelInstance instance = model.newInstance();
                RecordingModelRequest request = mood("crash")) {
            instance.execute(List.of(request));
            assertThat(request.ends()).containsExactly("fail");
            assertThat(request.failure().code()).isEqualTo(ErrorCode.UNAVAILABLE);
        }
    }

    @Test
    void aRequestOfASequenceFailsBecauseItsStateIsGone() throws Exception {
        Options sequence = new Options(0, 0, new SequenceFlags(7L, false, false), null);
        try (BackendModel model = moody(1);
                ModelInstance instance = model.newInstance();
                RecordingModelRequest of = mood("pid", sequence);
                RecordingModelRequest independent = mood("pid")) {
            executeOnStopped(instance, List.of(of, independent));
            assertThat(of.ends()).containsExactly("fail");
            assertThat(of.failure().code()).isEqualTo(ErrorCode.UNAVAILABLE);
            assertThat(said(independent)).isNotEmpty();
        }
    }

    @Test
    void aProcessThatDiesBetweenRequestsFailsNone() throws Exception {
        try (BackendModel model = moody(1);
                ModelInstance instance = model.newInstance()) {
            for (int i = 0; i < 10; i++) {
                long pid = pid(instance);
                signal("KILL", pid);
                assertThat(pid(instance)).isNotEqualTo(pid);
            }
        }
    }

    @Test
    void deathsWithSuccessesBetweenThemBringNoPause() {
        try (BackendModel model = moody(1);
                ModelInstance instance = model.newInstance()) {
            for (int i = 0; i < 6; i++) {
                kill(instance);
                assertThat(pid(instance)).isPositive();
            }
        }
    }

    @Test
    void nothingOfADeadProcessIsKept() {
        try (BackendModel model = moody(1);
                ModelInstance instance = model.newInstance()) {
            for (int i = 0; i < 3; i++) {
                kill(instance);
                assertThat(pid(instance)).isPositive();
                assertThat(((PythonModel) model).runningWorkers()).isEqualTo(1);
            }
        }
    }

    @Test
    void requestsWaitForTheNextProcessThroughShortPauses() {
        try (BackendModel model = moody(1);
                ModelInstance instance = model.newInstance()) {
            kill(instance);
            kill(instance);
            assertThat(pid(instance)).isPositive();
        }
    }

    @Test
    void whileOneInstanceHasNoProcessAnotherOneRunsItsRequests() throws Exception {
        try (BackendModel model = load(
                        blockable(), ModelConfig.builder("moody").instances(2).build());
                ModelInstance first = model.newInstance();
                ModelInstance second = model.newInstance()) {
            long other = pid(second);
            Files.createFile(block());
            kill(first);
            for (int i = 0; i < 5; i++) {
                assertThat(pid(first)).isEqualTo(other);
            }
        }
    }

    @Test
    void requestsFailAtOnceWhileProcessesKeepDyingAndNoneIsLeft() throws Exception {
        try (BackendModel model = load(
                        blockable(), ModelConfig.builder("moody").instances(1).build());
                ModelInstance instance = model.newInstance()) {
            Files.createFile(block());
            kill(instance);
            try (RecordingModelRequest request = mood("pid")) {
                assertThatThrownBy(() -> instance.execute(List.of(request)))
                        .isInstanceOfSatisfying(ServingException.class, e -> {
                            assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE);
                            assertThat(e.getMessage()).contains("times in a row");
                            assertThat(e.remedy()).startsWith("the next one starts in ");
                        });
            }
            Files.delete(block());
        }
    }
}
