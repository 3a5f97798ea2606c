// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.samples;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.SequenceBatching;
import io.nereid.spi.config.SequenceControl;
import io.nereid.spi.config.SequenceStateConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.RecordingModelRequest;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Every sample, as Triton's test models behave. */
class SampleBackendsTest {
    private static final Path NOWHERE = Path.of("nowhere");
    private static final ModelConfig OPEN = ModelConfig.unspecified("m");

    private static BackendModel load(Backend backend, ModelConfig config) {
        return backend.load(
                new ModelLocation(new ServableId("m", 1), NOWHERE, NOWHERE),
                config,
                new BackendContext(1, NOWHERE, Map.of()));
    }

    private static Tensor ints(String name, DataType type, Shape shape, int... values) {
        ByteBuffer bytes = ByteBuffer.allocate(4 * values.length).order(ByteOrder.LITTLE_ENDIAN);
        for (int v : values) {
            bytes.putInt(v);
        }
        return Tensor.over(
                name, type, shape, MemoryRegion.copyOf(bytes.array(), 0, bytes.capacity()), 0, bytes.capacity());
    }

    private static Tensor ints(String name, int... values) {
        return ints(name, DataType.INT32, Shape.of(values.length), values);
    }

    private static Tensor column(String name, int... values) {
        return ints(name, DataType.INT32, Shape.of(values.length, 1), values);
    }

    private static Tensor floats(String name, Shape shape, float... values) {
        Tensor t = Tensor.allocate(name, DataType.FP32, shape);
        t.buffer().asFloatBuffer().put(values);
        return t;
    }

    private static List<Integer> values(RecordingModelRequest request, String output) {
        return request.answers().stream()
                .map(a -> a.outputs().stream()
                        .filter(t -> t.name().equals(output))
                        .findFirst()
                        .orElseThrow()
                        .buffer()
                        .getInt())
                .toList();
    }

    @Test
    void identityRespondsWithFourParametersAndTheClientsOwnMemory() {
        try (BackendModel model = load(new IdentityBackend(), OPEN);
                ModelInstance invocation = model.newInstance();
                RecordingModelRequest request =
                        new RecordingModelRequest(List.of(floats("INPUT0", Shape.of(2), 1, 2)), List.of("OUTPUT0"))) {
            assertThat(model.traits().takesRequests()).isTrue();
            assertThat(model.traits().inline()).isTrue();
            invocation.execute(List.of(request));
            assertThat(request.ends()).containsExactly("complete");
            RecordingModelRequest.Answer answer = request.answers().get(0);
            assertThat(answer.parameters())
                    .isEqualTo(Map.of(
                            "param0",
                            "an example string parameter",
                            "param1",
                            42L,
                            "param2",
                            false,
                            "param3",
                            123.123));
            assertThat(answer.parameters().keySet()).containsExactly("param0", "param1", "param2", "param3");
            assertThat(answer.outputs().get(0).address())
                    .isEqualTo(request.request().inputs().get(0).address());
        }
    }

    @Test
    void identityWithoutResponseParametersStaysWithTensors() {
        ModelConfig config = OPEN.toBuilder()
                .parameters(Map.of("response_parameters", "false"))
                .build();
        try (BackendModel model = load(new IdentityBackend(), config)) {
            assertThat(model.traits().takesRequests()).isFalse();
            assertThat(model.traits().inline()).isTrue();
        }
    }

    @Test
    void identityPairsTensorsByTheirNumber() {
        ModelConfig config = OPEN.toBuilder()
                .inputs(List.of(
                        new TensorSpec("INPUT1", DataType.FP32, Shape.of(1)),
                        new TensorSpec("INPUT0", DataType.FP32, Shape.of(1))))
                .outputs(List.of(
                        new TensorSpec("OUTPUT0", DataType.FP32, Shape.of(1)),
                        new TensorSpec("OUTPUT1", DataType.FP32, Shape.of(1))))
                .build();
        try (BackendModel model = load(new IdentityBackend(), config);
                ModelInstance invocation = model.newInstance();
                RecordingModelRequest request = new RecordingModelRequest(
                        List.of(floats("INPUT1", Shape.of(1), 11), floats("INPUT0", Shape.of(1), 10)),
                        List.of("OUTPUT0", "OUTPUT1"))) {
            invocation.execute(List.of(request));
            assertThat(request.answers().get(0).outputs())
                    .extracting(t -> t.buffer().getFloat())
                    .containsExactly(10f, 11f);
        }
    }

    @Test
    void aConfiguredDelayOfLoadingIsKept() {
        ModelConfig config =
                OPEN.toBuilder().parameters(Map.of("creation_delay_sec", "1")).build();
        long before = Clock.system().nanos();
        load(new IdentityBackend(), config).close();
        assertThat(Clock.system().nanos() - before).isGreaterThanOrEqualTo(990_000_000L);
    }

    @Test
    void squareGivesAsManyResponsesAsItsInputSays() {
        try (BackendModel model = load(new SquareBackend(), OPEN);
                ModelInstance invocation = model.newInstance();
                RecordingModelRequest three = new RecordingModelRequest(List.of(ints("IN", 3)), List.of("OUT"));
                RecordingModelRequest none = new RecordingModelRequest(List.of(ints("IN", 0)), List.of("OUT"));
                RecordingModelRequest gone = new RecordingModelRequest(List.of(ints("IN", 5)), List.of("OUT"))) {
            assertThat(model.config().decoupled()).isTrue();
            assertThat(model.config().maxBatchSize()).isZero();
            gone.cancel();
            invocation.execute(List.of(three, none, gone));
            assertThat(values(three, "OUT")).containsExactly(3, 3, 3);
            assertThat(values(none, "OUT")).isEmpty();
            assertThat(values(gone, "OUT")).isEmpty();
            for (RecordingModelRequest request : List.of(three, none, gone)) {
                assertThat(request.ends()).containsExactly("finish");
            }
        }
    }

    private static RecordingModelRequest repeat(int wait, int[] values, int... delays) {
        return new RecordingModelRequest(
                List.of(
                        ints("IN", values),
                        ints("DELAY", DataType.UINT32, Shape.of(delays.length), delays),
                        ints("WAIT", DataType.UINT32, Shape.of(1), wait)),
                List.of("OUT", "IDX"));
    }

    @Test
    void repeatRespondsElementByElementAfterTheInstanceIsFree() throws Exception {
        try (BackendModel model = load(new RepeatBackend(), OPEN);
                ModelInstance invocation = model.newInstance();
                RecordingModelRequest request = repeat(0, new int[] {7, 8, 9}, 60, 40, 0);
                RecordingModelRequest empty = repeat(0, new int[0])) {
            long before = Clock.system().nanos();
            invocation.execute(List.of(request, empty));
            assertThat(request.answers()).isEmpty();
            assertThat(empty.ends()).containsExactly("finish");
            assertThat(request.awaitEnd()).isTrue();
            assertThat(values(request, "OUT")).containsExactly(7, 8, 9);
            assertThat(values(request, "IDX")).containsExactly(0, 1, 2);
            assertThat(request.ends()).containsExactly("finish");
            assertThat(request.answers().get(0).nanos() - before).isGreaterThanOrEqualTo(59_000_000L);
            assertThat(request.answers().get(1).nanos()
                            - request.answers().get(0).nanos())
                    .isGreaterThanOrEqualTo(39_000_000L);
        }
    }

    @Test
    void repeatKeepsItsInstanceBusyAsLongAsRequested() {
        try (BackendModel model = load(new RepeatBackend(), OPEN);
                ModelInstance invocation = model.newInstance();
                RecordingModelRequest request = repeat(50, new int[] {1}, 0)) {
            long before = Clock.system().nanos();
            invocation.execute(List.of(request));
            assertThat(Clock.system().nanos() - before).isGreaterThanOrEqualTo(49_000_000L);
            assertThat(request.ends()).containsExactly("finish");
        }
    }

    @Test
    void repeatRejectsDelaysThatDoNotFit() {
        try (BackendModel model = load(new RepeatBackend(), OPEN);
                ModelInstance invocation = model.newInstance();
                RecordingModelRequest request = repeat(0, new int[] {1, 2}, 0)) {
            invocation.execute(List.of(request));
            assertThat(request.failure())
                    .isNotNull()
                    .hasMessage("expected IN and DELAY shape to match, got [2] and [1]");
        }
    }

    @Test
    void whatRepeatOwesIsEndedWhenItIsClosed() {
        try (RecordingModelRequest request = repeat(0, new int[] {1}, 3_600_000)) {
            BackendModel model = load(new RepeatBackend(), OPEN);
            try (ModelInstance invocation = model.newInstance()) {
                invocation.execute(List.of(request));
            }
            model.close();
            assertThat(request.ends()).containsExactly("fail");
        }
    }

    @Test
    void repeatTakesItsOwnTensorsOnly() {
        List<TensorSpec> swapped = List.of(
                new TensorSpec("DELAY", DataType.UINT32, Shape.of(-1)),
                new TensorSpec("IN", DataType.INT32, Shape.of(-1)),
                new TensorSpec("WAIT", DataType.UINT32, Shape.of(1)));
        ModelConfig config = OPEN.toBuilder().inputs(swapped).build();
        assertThatThrownBy(() -> load(new RepeatBackend(), config))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessageContaining("expected input 1 to be IN INT32[-1], got DELAY UINT32[-1]");
        assertThatThrownBy(() -> load(
                        new RepeatBackend(), OPEN.toBuilder().maxBatchSize(4).build()))
                .hasMessageContaining("only supports models with max_batch_size == 0");
    }

    private static ModelConfig sequence(DataType corrid, String... controls) {
        List<SequenceControl> list = java.util.stream.Stream.of(controls)
                .map(name -> new SequenceControl(
                        name,
                        SequenceControl.Kind.valueOf(name),
                        name.equals("CORRID") ? corrid : DataType.INT32,
                        0,
                        1))
                .toList();
        return OPEN.toBuilder()
                .maxBatchSize(4)
                .sequence(new SequenceBatching(
                        new SequenceBatching.Direct(Duration.ZERO, 0), Duration.ZERO, list, List.of(), false))
                .build();
    }

    private static List<Integer> run(ModelInstance invocation, Tensor... inputs) {
        List<Tensor> outputs = List.of();
        try {
            outputs = invocation.run(List.of(inputs), List.of("OUTPUT"));
            ByteBuffer bytes = outputs.get(0).buffer();
            List<Integer> result = new java.util.ArrayList<>();
            while (bytes.hasRemaining()) {
                result.add(bytes.getInt());
            }
            return result;
        } finally {
            Tensor.closeAll(outputs);
            Tensor.closeAll(List.of(inputs));
        }
    }

    @Test
    void sequenceAddsUpSlotBySlotAndInstanceByInstance() {
        try (BackendModel model = load(new SequenceBackend(), sequence(DataType.UINT64, "START", "READY"));
                ModelInstance first = model.newInstance();
                ModelInstance second = model.newInstance()) {
            assertThat(model.config().modelInputs())
                    .extracting(TensorSpec::name)
                    .containsExactly("INPUT", "START", "READY");
            assertThat(run(first, column("INPUT", 1, 10), column("START", 1, 1), column("READY", 1, 1)))
                    .containsExactly(1, 10);
            // The slot of the second row has no request this time.
            assertThat(run(first, column("INPUT", 2, 99), column("START", 0, 0), column("READY", 1, 0))
                            .get(0))
                    .isEqualTo(3);
            assertThat(run(first, column("INPUT", 3, 20), column("START", 1, 0), column("READY", 1, 1)))
                    .containsExactly(3, 30);
            assertThat(run(second, column("INPUT", 5), column("START", 0), column("READY", 1)))
                    .containsExactly(5);
        }
    }

    @Test
    void dynaSequenceAddsUpByIdAndAddsTheIdAtTheEnd() {
        ModelConfig config = sequence(DataType.UINT64, "START", "END", "READY", "CORRID");
        try (BackendModel model = load(new DynaSequenceBackend(), config);
                ModelInstance invocation = model.newInstance()) {
            assertThat(step(invocation, 1, 1, 0, ids(1001))).isEqualTo(1);
            assertThat(step(invocation, 100, 1, 0, ids(7))).isEqualTo(100);
            assertThat(step(invocation, 2, 0, 0, ids(1001))).isEqualTo(3);
            assertThat(step(invocation, 3, 0, 1, ids(1001))).isEqualTo(6 + 1001);
            // Its sum was removed.
            assertThat(step(invocation, 5, 0, 0, ids(1001))).isEqualTo(5);
        }
    }

    @Test
    void dynaSequenceReadsIdsThatAreText() {
        ModelConfig config = sequence(DataType.BYTES, "START", "END", "READY", "CORRID");
        try (BackendModel model = load(new DynaSequenceBackend(), config);
                ModelInstance invocation = model.newInstance()) {
            assertThat(step(invocation, 4, 1, 1, text("12"))).isEqualTo(16);
            assertThatThrownBy(() -> step(invocation, 4, 1, 1, text("twelve")))
                    .hasMessage("correlation id 'twelve' is not a number (expected: digits)");
        }
    }

    private static int step(ModelInstance invocation, int value, int start, int end, Tensor id) {
        return run(
                        invocation,
                        column("INPUT", value),
                        column("START", start),
                        column("END", end),
                        column("READY", 1),
                        id)
                .get(0);
    }

    private static Tensor ids(long id) {
        Tensor t = Tensor.allocate("CORRID", DataType.UINT64, Shape.of(1, 1));
        t.buffer().putLong(id);
        return t;
    }

    private static Tensor text(String id) {
        byte[] utf8 = id.getBytes(StandardCharsets.UTF_8);
        MemoryRegion region = MemoryRegion.allocate(4 + utf8.length);
        region.setInt(0, utf8.length);
        region.setBytes(4, utf8, 0, utf8.length);
        return Tensor.over("CORRID", DataType.BYTES, Shape.of(1, 1), region, 0, 4 + utf8.length);
    }

    @Test
    void sequencesWithoutTheirControlsAreRejected() {
        assertThatThrownBy(() -> load(new SequenceBackend(), sequence(DataType.UINT64, "START")))
                .hasMessageContaining("'START', 'READY' must be configured as the control inputs, got [START]");
        assertThatThrownBy(() -> load(new DynaSequenceBackend(), OPEN))
                .hasMessageContaining("'START', 'END', 'READY', 'CORRID' must be configured as the control inputs");
    }

    @Test
    void implicitStateAddsWhatItIsFed() {
        SequenceStateConfig state =
                new SequenceStateConfig("INPUT_STATE", "OUTPUT_STATE", DataType.FP32, Shape.of(2), null, false);
        ModelConfig config = OPEN.toBuilder()
                .maxBatchSize(4)
                .sequence(new SequenceBatching(
                        new SequenceBatching.Direct(Duration.ZERO, 0), Duration.ZERO, List.of(), List.of(state), false))
                .build();
        try (BackendModel model = load(new ImplicitStateBackend(), config);
                ModelInstance invocation = model.newInstance();
                Tensor in = floats("INPUT", Shape.of(1, 2), 1, 2);
                Tensor before = floats("INPUT_STATE", Shape.of(1, 2), 10, 20)) {
            assertThat(model.config().modelOutputs())
                    .extracting(TensorSpec::name)
                    .containsExactly("OUTPUT", "OUTPUT_STATE");
            List<Tensor> out = invocation.run(List.of(in, before), List.of("OUTPUT_STATE", "OUTPUT"));
            assertThat(out).extracting(Tensor::name).containsExactly("OUTPUT_STATE", "OUTPUT");
            assertThat(out.get(0).buffer().getFloat(4)).isEqualTo(22);
            Tensor.closeAll(out);
        }
        assertThatThrownBy(() -> load(new ImplicitStateBackend(), OPEN)).hasMessageContaining("has 0 states");
    }

    @Test
    void iterativeSequenceCountsDownOverManyRuns() {
        InferenceRequest.Options options =
                new InferenceRequest.Options(0, 0, new InferenceRequest.SequenceFlags(5L, true, true), null);
        try (BackendModel model = load(new IterativeSequenceBackend(), OPEN);
                ModelInstance invocation = model.newInstance()) {
            for (int expected = 2; expected >= 0; expected--) {
                try (RecordingModelRequest request =
                        new RecordingModelRequest(List.of(ints("INPUT", 3)), List.of("OUTPUT"), options)) {
                    invocation.execute(List.of(request));
                    assertThat(values(request, "OUTPUT")).containsExactly(expected);
                    assertThat(request.ends()).containsExactly(expected == 0 ? "complete" : "reschedule");
                }
            }
        }
    }
}
