// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.python;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelRequest;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.RecordingModelRequest;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tensors passed through numpy, responses of decoupled models, and requests to other models. */
class NumpyModelTest {
    @TempDir
    Path directory;

    @BeforeAll
    static void numpy() {
        Interpreter.assumeNumpy();
    }

    private BackendModel load(String name, ModelConfig config, @Nullable InferenceEngine engine) {
        Map<String, String> settings = Map.of("python", Interpreter.path(), "shm-default-byte-size", "1048576");
        return new PythonBackend()
                .load(
                        Fixtures.copied(name, directory),
                        config,
                        new BackendContext(2, directory, settings, true, engine, null));
    }

    private static ModelConfig echo(DataType type) {
        return ModelConfig.builder("echo")
                .inputs(List.of(new TensorSpec("IN", type, Shape.of(-1))))
                .outputs(List.of(new TensorSpec("OUT", type, Shape.of(-1))))
                .build();
    }

    /** A request with parameters, which {@code RecordingRequest} does not have. */
    private record Asking(RecordingModelRequest recording, Map<String, Object> parameters) implements ModelRequest {
        @Override
        public InferenceRequest request() {
            InferenceRequest r = recording.request();
            return new InferenceRequest(
                    r.model(), r.id(), r.inputs(), r.outputs(), parameters, r.deadlineNanos(), r.arrivedNanos());
        }

        @Override
        public List<String> outputs() {
            return recording.outputs();
        }

        @Override
        public boolean cancelled() {
            return recording.cancelled();
        }

        @Override
        public void respond(List<Tensor> outputs, Map<String, Object> p) {
            recording.respond(outputs, p);
        }

        @Override
        public void complete(List<Tensor> outputs, Map<String, Object> p) {
            recording.complete(outputs, p);
        }

        @Override
        public void finish() {
            recording.finish();
        }

        @Override
        public void fail(ServingException e) {
            recording.fail(e);
        }

        @Override
        public void reschedule() {
            recording.reschedule();
        }
    }

    private static Tensor tensor(DataType type, byte[] bytes, long... shape) {
        return Tensor.over("IN", type, Shape.of(shape), MemoryRegion.copyOf(bytes, 0, bytes.length), 0, bytes.length);
    }

    private static byte[] bytes(Tensor t) {
        byte[] bytes = new byte[t.byteLength()];
        t.buffer().get(bytes);
        return bytes;
    }

    private static RecordingModelRequest ask(ModelInstance invocation, Tensor input, Map<String, Object> parameters) {
        RecordingModelRequest recording = new RecordingModelRequest(List.of(input), List.of("OUT"));
        invocation.execute(List.of(new Asking(recording, parameters)));
        return recording;
    }

    private static byte[] answered(ModelInstance invocation, Tensor input, Map<String, Object> parameters) {
        try (RecordingModelRequest r = ask(invocation, input, parameters)) {
            assertThat(r.failure()).isNull();
            return bytes(r.answers().get(0).outputs().get(0));
        }
    }

    private static byte[] random(int size) {
        byte[] bytes = new byte[size];
        new Random(size).nextBytes(bytes);
        return bytes;
    }

    @Test
    void everyTypeComesBackAsItWent() {
        for (DataType type : DataType.values()) {
            if (type == DataType.BYTES || type == DataType.BF16) {
                continue;
            }
            byte[] values = type == DataType.BOOL ? new byte[] {1, 0, 1, 1} : random(4 * type.size());
            try (BackendModel model = load("echo", echo(type), null);
                    ModelInstance invocation = model.newInstance()) {
                for (String how : List.of("same", "copy", "raw")) {
                    assertThat(answered(invocation, tensor(type, values, 4), Map.of("how", how)))
                            .as(type + " " + how)
                            .isEqualTo(values);
                }
            }
        }
    }

    @Test
    void textsComeBackAsTheyWent() {
        byte[] texts = {2, 0, 0, 0, 'a', 0, 0, 0, 0, 0, 3, 0, 0, 0, (byte) 0xff, 'b', 'c'};
        try (BackendModel model = load("echo", echo(DataType.BYTES), null);
                ModelInstance invocation = model.newInstance()) {
            assertThat(answered(invocation, tensor(DataType.BYTES, texts, 3), Map.of()))
                    .isEqualTo(texts);
            assertThat(answered(invocation, tensor(DataType.BYTES, texts, 3), Map.of("how", "copy")))
                    .isEqualTo(texts);
        }
    }

    @Test
    void bf16PassesWhereNobodyLooksIntoIt() {
        byte[] values = random(8);
        try (BackendModel model = load("echo", echo(DataType.BF16), null);
                ModelInstance invocation = model.newInstance()) {
            assertThat(answered(invocation, tensor(DataType.BF16, values, 4), Map.of("how", "raw")))
                    .isEqualTo(values);
        }
    }

    @Test
    void arraysOfEveryMakeAreAnsweredAsTheirValues() {
        byte[] values = {0, 0, (byte) 0x80, 0x3f, 0, 0, 0, 0x40, 0, 0, 0x40, 0x40, 0, 0, (byte) 0x80, 0x40};
        byte[] turned = {0, 0, (byte) 0x80, 0x3f, 0, 0, 0x40, 0x40, 0, 0, 0, 0x40, 0, 0, (byte) 0x80, 0x40};
        byte[] view = {0, 0, 0x40, 0x40, 0, 0, (byte) 0x80, 0x40};
        try (BackendModel model = load("echo", echo(DataType.FP32), null);
                ModelInstance invocation = model.newInstance()) {
            for (String how : List.of("same", "copy", "big-endian", "dlpack")) {
                assertThat(answered(invocation, tensor(DataType.FP32, values, 2, 2), Map.of("how", how)))
                        .as(how)
                        .isEqualTo(values);
            }
            try (RecordingModelRequest wide =
                    ask(invocation, tensor(DataType.FP32, values, 2, 2), Map.of("how", "wide"))) {
                // As the model made it, whatever the configuration says.
                assertThat(wide.answers().get(0).outputs().get(0).dataType()).isEqualTo(DataType.FP64);
            }
            assertThat(answered(invocation, tensor(DataType.FP32, values, 2, 2), Map.of("how", "turned")))
                    .isEqualTo(turned);
            assertThat(answered(invocation, tensor(DataType.FP32, values, 2, 2), Map.of("how", "view")))
                    .isEqualTo(view);
            assertThat(answered(invocation, tensor(DataType.FP32, new byte[0], 0), Map.of("how", "copy")))
                    .isEmpty();
        }
    }

    @Test
    void tensorsLargerThanTheFirstFileFit() {
        byte[] large = random(5 << 20);
        byte[] larger = random(40 << 20);
        try (BackendModel model = load("echo", echo(DataType.UINT8), null);
                ModelInstance invocation = model.newInstance()) {
            for (int i = 0; i < 3; i++) {
                assertThat(answered(invocation, tensor(DataType.UINT8, large, large.length), Map.of("how", "copy")))
                        .isEqualTo(large);
                assertThat(answered(invocation, tensor(DataType.UINT8, larger, larger.length), Map.of("how", "same")))
                        .isEqualTo(larger);
            }
        }
    }

    @Test
    void answersStayWholeWhileLaterRequestsComeAndAfterTheModelHasGone() {
        List<RecordingModelRequest> kept = new ArrayList<>();
        try (BackendModel model = load("echo", echo(DataType.UINT8), null);
                ModelInstance invocation = model.newInstance()) {
            for (int i = 0; i < 200; i++) {
                String how = i % 2 == 0 ? "same" : "copy";
                kept.add(ask(invocation, tensor(DataType.UINT8, random(1000 + i), 1000 + i), Map.of("how", how)));
            }
        }
        for (int i = 0; i < 200; i++) {
            try (RecordingModelRequest r = kept.get(i)) {
                assertThat(bytes(r.answers().get(0).outputs().get(0))).isEqualTo(random(1000 + i));
            }
        }
    }

    @Test
    void unloadingGivesTheSharedMemoryBack() throws IOException {
        assumeTrue(Files.isReadable(Path.of("/proc/self/status")));
        byte[] large = random(20 << 20);
        for (int i = 0; i < 20; i++) {
            try (BackendModel model = load("echo", echo(DataType.UINT8), null);
                    ModelInstance invocation = model.newInstance()) {
                assertThat(answered(invocation, tensor(DataType.UINT8, large, large.length), Map.of("how", "copy")))
                        .hasSameSizeAs(large);
            }
        }
        String resident = Files.readAllLines(Path.of("/proc/self/status")).stream()
                .filter(line -> line.startsWith("RssShmem:"))
                .findFirst()
                .orElse("RssShmem: 0 kB");
        assertThat(Integer.parseInt(resident.replaceAll("\\D", ""))).isLessThan(60_000);
    }

    @Test
    void aTensorOfAnAnsweredRequestIsNotGivenToAnother() {
        try (BackendModel model = load("echo", echo(DataType.FP32), null);
                ModelInstance invocation = model.newInstance()) {
            ask(invocation, tensor(DataType.FP32, random(4), 1), Map.of("how", "stale"))
                    .close();
            try (RecordingModelRequest r =
                    ask(invocation, tensor(DataType.FP32, random(4), 1), Map.of("how", "stale"))) {
                // The tensor's name is not an output's, so the response has no outputs. Its values are not available.
                assertThat(r.failure() == null ? r.answers().get(0).outputs() : List.of())
                        .isEmpty();
            }
        }
    }

    @Test
    void aDecoupledModelAnswersAsOftenAsItLikesAndFromItsOwnThreads() throws Exception {
        ModelConfig config = ModelConfig.builder("square")
                .inputs(List.of(new TensorSpec("IN", DataType.INT32, Shape.of(1))))
                .outputs(List.of(new TensorSpec("OUT", DataType.INT32, Shape.of(1))))
                .decoupled(true)
                .build();
        List<RecordingModelRequest> requests = new ArrayList<>();
        try (BackendModel model = load("square", config, null);
                ModelInstance invocation = model.newInstance()) {
            for (int n : new int[] {3, 0, 2000, 1}) {
                Tensor in = Tensor.allocate("IN", DataType.INT32, Shape.of(1));
                in.buffer().putInt(n);
                RecordingModelRequest r = new RecordingModelRequest(List.of(in), List.of("OUT"));
                requests.add(r);
                invocation.execute(List.of(r));
            }
            for (RecordingModelRequest r : requests) {
                assertThat(r.awaitEnd()).isTrue();
                assertThat(r.ends()).containsExactly("finish");
            }
        }
        assertThat(requests).extracting(r -> r.answers().size()).containsExactly(3, 0, 2000, 1);
        assertThat(requests.get(2).answers())
                .allMatch(a -> a.outputs().get(0).buffer().getInt() == 2000);
        requests.forEach(RecordingModelRequest::close);
    }

    @Test
    void aStreamWhoseClientHasGoneStops() throws Exception {
        ModelConfig config = ModelConfig.builder("repeat")
                .inputs(List.of(
                        new TensorSpec("IN", DataType.INT32, Shape.of(-1)),
                        new TensorSpec("DELAY", DataType.UINT32, Shape.of(-1)),
                        new TensorSpec("WAIT", DataType.UINT32, Shape.of(1))))
                .outputs(List.of(
                        new TensorSpec("OUT", DataType.INT32, Shape.of(1)),
                        new TensorSpec("IDX", DataType.UINT32, Shape.of(1))))
                .decoupled(true)
                .build();
        Tensor in = Tensor.allocate("IN", DataType.INT32, Shape.of(500));
        in.region().zero();
        Tensor delay = Tensor.allocate("DELAY", DataType.UINT32, Shape.of(500));
        for (int i = 0; i < 500; i++) {
            delay.region().setInt(4 * i, 10);
        }
        Tensor wait = Tensor.allocate("WAIT", DataType.UINT32, Shape.of(1));
        wait.region().zero();
        try (BackendModel model = load("repeat", config, null);
                ModelInstance invocation = model.newInstance();
                RecordingModelRequest r = new RecordingModelRequest(List.of(in, delay, wait), List.of("OUT", "IDX"))) {
            invocation.execute(List.of(r));
            r.cancel();
            assertThat(r.awaitEnd()).isTrue();
            assertThat(r.answers().size()).isLessThan(500);
        }
    }

    /** An engine with one other model: returns its inputs, in a given number of responses. */
    private static final class Other implements InferenceEngine {
        final List<InferenceRequest> asked = new CopyOnWriteArrayList<>();
        final int answers;

        Other(int answers) {
            this.answers = answers;
        }

        @Override
        public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
            asked.add(request);
            if (!request.model().model().equals("other")) {
                request.release();
                sink.fail(ServingException.of(
                        ErrorCode.NOT_FOUND, "no model '" + request.model().model() + "'"));
                return () -> {};
            }
            for (int i = 0; i < answers; i++) {
                Tensor out = request.inputs()
                        .get(0)
                        .retainAs("OUT", request.inputs().get(0).shape());
                sink.next(
                        new InferenceResponse(new ServableId("other", 1), "", List.of(out), Map.of()),
                        i == answers - 1);
            }
            request.release();
            return () -> {};
        }

        @Override
        public ModelMetadata metadata(ModelRef model) {
            throw new UnsupportedOperationException();
        }

        @Override
        public ModelConfig config(ModelRef model) {
            throw new UnsupportedOperationException();
        }
    }

    private static Map<String, Object> asking(String how, String model) {
        return new HashMap<>(Map.of("how", how, "model", model));
    }

    @Test
    void aModelAsksAnother() {
        Other other = new Other(1);
        byte[] values = random(400);
        try (BackendModel model = load("echo", echo(DataType.FP32), other);
                ModelInstance invocation = model.newInstance()) {
            for (int i = 0; i < 300; i++) {
                assertThat(answered(invocation, tensor(DataType.FP32, values, 100), asking("ask", "other")))
                        .isEqualTo(values);
            }
            InferenceRequest asked = other.asked.get(0);
            assertThat(asked.id()).isEqualTo("from echo");
            assertThat(asked.parameters()).isEqualTo(Map.of("deep", 1L));
            assertThat(asked.options().sequence()).isEqualTo(new InferenceRequest.SequenceFlags("seq", true, false));
            try (RecordingModelRequest r =
                    ask(invocation, tensor(DataType.FP32, values, 100), asking("ask", "missing"))) {
                assertThat(r.failure()).isNotNull();
                assertThat(r.failure().code()).isEqualTo(ErrorCode.NOT_FOUND);
                assertThat(r.failure().getMessage()).isEqualTo("no model 'missing'");
            }
        }
    }

    @Test
    void aModelTakesTheStreamOfAnother() {
        byte[] values = random(40);
        Other other = new Other(50);
        try (BackendModel model = load("echo", echo(DataType.FP32), other);
                ModelInstance invocation = model.newInstance()) {
            byte[] all = answered(invocation, tensor(DataType.FP32, values, 10), asking("ask-many", "other"));
            assertThat(all).hasSize(50 * 40).startsWith(values).endsWith(values);
            try (RecordingModelRequest r = ask(invocation, tensor(DataType.FP32, values, 10), asking("ask", "other"))) {
                assertThat(r.failure()).isNotNull();
                assertThat(r.failure().getMessage()).contains("several responses instead of one");
            }
        }
    }
}
