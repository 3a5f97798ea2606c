// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceRequest.SequenceFlags;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.RecordingModelRequest;
import io.nereid.testkit.RecordingModelRequest.Answer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Requests to a model that fails, hangs, dies or calls the server, by the text of the request. None of it needs numpy.
 */
class MoodyModelTest {
    @TempDir
    Path directory;

    private BackendModel model;
    private ModelInstance invocation;

    @BeforeAll
    static void python() {
        Interpreter.assumePython();
    }

    @BeforeEach
    void load() {
        model = load(Fixtures.copied("moody", directory), ModelConfig.unspecified("moody"), Map.of());
        invocation = model.newInstance();
    }

    @AfterEach
    void unload() {
        invocation.close();
        model.close();
    }

    private BackendModel load(ModelLocation source, ModelConfig config, Map<String, String> settings) {
        Map<String, String> all = new HashMap<>(Map.of("python", Interpreter.path()));
        all.putAll(settings);
        return new PythonBackend().load(source, config, new BackendContext(2, directory, all));
    }

    static Tensor text(String name, String value) {
        byte[] bytes = value.getBytes(StandardCharsets.UTF_8);
        byte[] element = ByteBuffer.allocate(4 + bytes.length)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(bytes.length)
                .put(bytes)
                .array();
        return Tensor.over(
                name, DataType.BYTES, Shape.of(1), MemoryRegion.copyOf(element, 0, element.length), 0, element.length);
    }

    private static RecordingModelRequest mood(String mood) {
        return new RecordingModelRequest(List.of(text("MOOD", mood)), List.of("SAID"));
    }

    private String said(RecordingModelRequest request) {
        invocation.execute(List.of(request));
        assertThat(request.failure()).isNull();
        assertThat(request.ends()).containsExactly("complete");
        return said(request.answers().get(0));
    }

    private static String said(Answer answer) {
        Tensor t = answer.outputs().get(0);
        byte[] bytes = new byte[t.byteLength() - 4];
        t.buffer().position(4).get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private ServingException failure(String mood) {
        try (RecordingModelRequest request = mood(mood)) {
            invocation.execute(List.of(request));
            assertThat(request.ends()).containsExactly("fail");
            return request.failure();
        }
    }

    private static boolean alive(long pid) {
        return ProcessHandle.of(pid).map(ProcessHandle::isAlive).orElse(false);
    }

    private static void awaitEnd(long pid) throws Exception {
        ProcessHandle.of(pid)
                .map(ProcessHandle::onExit)
                .orElseGet(() -> CompletableFuture.completedFuture(ProcessHandle.current()))
                .get(20, TimeUnit.SECONDS);
    }

    @Test
    void theModelLearnsAllThatTheRequestSays() {
        Options options = new Options(0, 5_000_000, new SequenceFlags(-2L, true, false), null);
        try (RecordingModelRequest request =
                new RecordingModelRequest(List.of(text("MOOD", "about")), List.of("SAID"), options)) {
            String said = said(request);
            assertThat(said)
                    .contains("\"correlation\": 18446744073709551614")
                    .contains("\"flags\": 1")
                    .contains("\"timeout\": 5000")
                    .contains("\"outputs\": [\"SAID\"]")
                    .contains("\"instance\": \"moody_0\"")
                    .contains("\"kind\": \"CPU\"")
                    .contains("\"version\": \"1\"")
                    .contains("\"data_type\": \"TYPE_STRING\"");
            assertThat(request.answers().get(0).parameters())
                    .isEqualTo(Map.of("text", "é", "number", 7L, "yes", true, "half", 0.5));
        }
    }

    @Test
    void anErrorOfTheModelKeepsItsCodeAndItsWords() {
        ServingException e = failure("error");
        assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND);
        assertThat(e.getMessage()).isEqualTo("I do not like it");
    }

    @Test
    void anExceptionSaysWhereButNotTheWholeTrace() {
        ServingException e = failure("raises");
        assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(e.getMessage())
                .startsWith("Failed to process the request(s) for model instance 'moody_0', message: ValueError: what"
                        + " a day (model.py:")
                .doesNotContain("Traceback");
    }

    @Test
    void responsesMustMatchTheRequests() {
        assertThat(failure("none").getMessage()).contains("a list with None");
        assertThat(failure("no_list").getMessage()).contains("execute returned None");
        assertThat(failure("too_many").getMessage()).contains("execute returned 2 responses (expected: 1");
    }

    @Test
    void outputsNobodyAskedForAreDropped() {
        try (RecordingModelRequest request = mood("unknown_output")) {
            assertThat(said(request)).isEqualTo("only me");
            assertThat(request.answers().get(0).outputs()).hasSize(1);
        }
    }

    @Test
    void aModelThatIsNotDecoupledMayUseASender() {
        try (RecordingModelRequest request = mood("sender")) {
            assertThat(said(request)).isEqualTo("sent");
        }
    }

    @Test
    void requestsOfOneRunAreAnsweredOneByOne() {
        try (RecordingModelRequest good = mood("pid");
                RecordingModelRequest bad = mood("error")) {
            invocation.execute(List.of(good, bad));
            assertThat(good.ends()).containsExactly("complete");
            assertThat(bad.ends()).containsExactly("fail");
        }
    }

    @Test
    void aModelSeesThatItsClientHasGone() throws Exception {
        try (RecordingModelRequest request = mood("cancelled")) {
            CompletableFuture<Void> run = CompletableFuture.runAsync(
                    () -> invocation.execute(List.of(request)), task -> new Thread(task).start());
            request.cancel();
            run.get(15, TimeUnit.SECONDS);
            assertThat(request.failure().code()).isEqualTo(ErrorCode.CANCELLED);
        }
    }

    @Test
    void aDeadProcessFailsItsRequestAndIsReplaced() {
        String before;
        try (RecordingModelRequest request = mood("pid")) {
            before = said(request);
        }
        ServingException e = failure("crash");
        assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE);
        assertThat(e.getMessage()).contains("ended (signal 9) before it responded");
        try (RecordingModelRequest request = mood("pid")) {
            assertThat(said(request)).isNotEqualTo(before);
        }
    }

    @Test
    void aProcessThatDiesWithoutARequestIsReplacedToo() throws Exception {
        long before;
        try (RecordingModelRequest request = mood("pid")) {
            before = Long.parseLong(said(request));
        }
        ProcessHandle.of(before).ifPresent(ProcessHandle::destroyForcibly);
        awaitEnd(before);
        // The first request may still find the dead process. It has not been sent, so the next process gets it.
        try (RecordingModelRequest request = mood("pid")) {
            invocation.execute(List.of(request));
            assertThat(request.ends()).hasSize(1);
        }
        try (RecordingModelRequest request = mood("pid")) {
            assertThat(said(request)).isNotEqualTo(String.valueOf(before));
        }
    }

    @Test
    void numpyIsNeededOnlyWhereValuesAreTouched() {
        try (RecordingModelRequest request = mood("numpy")) {
            invocation.execute(List.of(request));
            ServingException failure = request.failure();
            if (failure != null) {
                assertThat(failure.getMessage())
                        .contains("numpy cannot be imported by ")
                        .contains("EXECUTION_ENV_PATH");
            } else {
                assertThat(said(request.answers().get(0))).isEqualTo("numpy is there");
            }
        }
    }

    @Test
    void dyingAgainAndAgainAtOnceBringsAPause() throws Exception {
        for (int i = 0; i < 4; i++) {
            assertThat(failure("exit").getMessage()).contains("exit status 3");
        }
        try (RecordingModelRequest request = mood("pid")) {
            assertThatThrownBy(() -> invocation.execute(List.of(request)))
                    .isInstanceOfSatisfying(ServingException.class, e -> {
                        assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE);
                        assertThat(e.getMessage()).contains("it died 4 times in a row");
                        assertThat(e.remedy()).startsWith("the next one starts in ");
                    });
        }
        CompletableFuture<Void> back = new CompletableFuture<>();
        CompletableFuture.delayedExecutor(2200, TimeUnit.MILLISECONDS).execute(() -> back.complete(null));
        back.get();
        try (RecordingModelRequest request = mood("pid")) {
            assertThat(said(request)).isNotEmpty();
        }
    }

    @Test
    void unloadingLeavesNoProcessAndNoFile() throws Exception {
        long pid;
        long child;
        try (RecordingModelRequest request = mood("pid")) {
            pid = Long.parseLong(said(request));
        }
        try (RecordingModelRequest request = mood("child")) {
            child = Long.parseLong(said(request));
        }
        assertThat(alive(pid)).isTrue();
        assertThat(alive(child)).isTrue();
        invocation.close();
        awaitEnd(pid);
        awaitEnd(child);
        assertThat(alive(pid)).isFalse();
        assertThat(alive(child)).isFalse();
    }

    @Test
    void filesOfSharedMemoryHaveNoNamesWhileTheyAreUsed() throws Exception {
        String prefix = "nereid-test-" + ProcessHandle.current().pid();
        try (BackendModel own = load(
                        Fixtures.copied("moody", directory),
                        ModelConfig.unspecified("moody"),
                        Map.of("shm-region-prefix-name", prefix));
                ModelInstance run = own.newInstance();
                RecordingModelRequest request = mood("pid")) {
            run.execute(List.of(request));
            assertThat(request.ends()).containsExactly("complete");
            try (var names = Files.list(Path.of("/dev/shm"))) {
                assertThat(names.filter(p -> p.getFileName().toString().startsWith(prefix)))
                        .isEmpty();
            }
        }
    }

    @Test
    void loadingAndUnloadingLeavesNoThread() {
        int before = Thread.activeCount();
        for (int i = 0; i < 10; i++) {
            BackendModel again = load(Fixtures.copied("moody", directory), ModelConfig.unspecified("moody"), Map.of());
            ModelInstance one = again.newInstance();
            try (RecordingModelRequest request = mood("pid")) {
                one.execute(List.of(request));
                assertThat(request.ends()).containsExactly("complete");
            }
            one.close();
            again.close();
        }
        assertThat(Thread.activeCount()).isLessThan(before + 12);
    }

    @Test
    void everyConfiguredInstanceRunsFromTheStart() {
        ModelConfig two = ModelConfig.builder("moody").instances(2).build();
        try (BackendModel pair = load(Fixtures.copied("moody", directory), two, Map.of());
                ModelInstance first = pair.newInstance();
                ModelInstance second = pair.newInstance();
                RecordingModelRequest a = mood("pid");
                RecordingModelRequest b = mood("pid")) {
            first.execute(List.of(a));
            second.execute(List.of(b));
            assertThat(said(a.answers().get(0))).isNotEqualTo(said(b.answers().get(0)));
        }
    }
}
