// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import static io.nereid.backends.onnx.Fixtures.floats;
import static io.nereid.backends.onnx.Fixtures.longs;
import static io.nereid.backends.onnx.Fixtures.raw;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.onnxruntime.OrtProvider;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.backends.onnx.Fixtures.Answer;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.BatchInput;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ExecutionAccelerator;
import io.nereid.spi.config.InitialStateConfig;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.OptimizationPolicy;
import io.nereid.spi.config.SequenceBatching;
import io.nereid.spi.config.SequenceControl;
import io.nereid.spi.config.SequenceStateConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Control inputs and states that the server feeds, labels, and other parts of the model configuration. */
class OnnxConfigTest {
    private static final SequenceBatching.Direct DIRECT = new SequenceBatching.Direct(Duration.ZERO, 0);

    @TempDir
    Path root;

    private Fixtures fixtures() {
        return new Fixtures(root);
    }

    private BackendModel load(String fixture, ModelConfig.Builder config) {
        return fixtures().load(fixture, config.build());
    }

    private BackendModel check(String fixture, ModelConfig.Builder config) {
        return Fixtures.BACKEND.load(
                fixtures().source(fixture), config.build(), new BackendContext(2, root, Map.of(), false));
    }

    private static void assertRefused(ThrowingCallable call, String... texts) {
        assertThatThrownBy(call).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.describe()).contains(texts);
        });
    }

    private static TensorSpec spec(String name, DataType type, long... dims) {
        return new TensorSpec(name, type, Shape.of(dims));
    }

    private static Tensor ints(String name, Shape shape, int... values) {
        ByteBuffer bytes = ByteBuffer.allocate(4 * values.length).order(ByteOrder.LITTLE_ENDIAN);
        for (int v : values) {
            bytes.putInt(v);
        }
        return raw(name, DataType.INT32, shape, bytes.array());
    }

    private static Tensor column(String name, int... values) {
        return ints(name, Shape.of(values.length, 1), values);
    }

    private static List<Integer> ints(Answer answer) {
        ByteBuffer b = ByteBuffer.wrap(answer.bytes()).order(ByteOrder.LITTLE_ENDIAN);
        List<Integer> values = new java.util.ArrayList<>();
        while (b.hasRemaining()) {
            values.add(b.getInt());
        }
        return values;
    }

    private static SequenceBatching controls(String... names) {
        List<SequenceControl> controls = java.util.stream.Stream.of(names)
                .map(n -> new SequenceControl(
                        n,
                        SequenceControl.Kind.valueOf(n),
                        n.equals("CORRID") ? DataType.UINT64 : DataType.INT32,
                        0,
                        1))
                .toList();
        return new SequenceBatching(DIRECT, Duration.ofSeconds(1), controls, List.of(), false);
    }

    private static SequenceBatching states(SequenceStateConfig... states) {
        return new SequenceBatching(DIRECT, Duration.ofSeconds(1), List.of(), List.of(states), false);
    }

    @Test
    void controlsOfASequenceAreFedAsTheGraphWantsThem() {
        ModelConfig.Builder open =
                ModelConfig.builder("controls").sequence(controls("START", "END", "READY", "CORRID"));
        try (BackendModel model = load("controls", open);
                ModelInstance invocation = model.newInstance()) {
            assertThat(model.config().inputs()).containsExactly(spec("INPUT", DataType.INT32, 1));
            assertThat(model.config().outputs()).containsExactly(spec("OUTPUT", DataType.INT32, 1));
            assertThat(model.config().maxBatchSize()).isEqualTo(4);
            // The sequence batcher schedules the requests, so dynamic batching is not filled in.
            assertThat(model.config().batching()).isNull();
            byte[] ids = new byte[16];
            ids[0] = 7;
            ids[8] = 9;
            List<Answer> answers = Fixtures.run(
                    invocation,
                    List.of(
                            column("INPUT", 5, 6),
                            column("START", 1, 0),
                            column("END", 0, 1),
                            column("READY", 1, 1),
                            raw("CORRID", DataType.UINT64, Shape.of(2, 1), ids)),
                    List.of("OUTPUT"));
            assertThat(ints(answers.get(0))).containsExactly(6, 15);
        }
        assertRefused(
                () -> load(
                        "controls",
                        open.sequence(controls("START", "READY")).inputs(List.of(spec("INPUT", DataType.INT32, 1)))),
                "unable to load model 'controls', configuration expects 3 inputs, model provides 5",
                "add END, CORRID");
        assertRefused(
                () -> load(
                        "controls",
                        open.inputs(List.of())
                                .sequence(new SequenceBatching(
                                        DIRECT,
                                        Duration.ZERO,
                                        List.of(new SequenceControl(
                                                "START", SequenceControl.Kind.START, DataType.FP32, 0, 1)),
                                        List.of(),
                                        false))),
                "configuration expects datatype TYPE_FP32 for input 'START', model provides TYPE_INT32");
    }

    @Test
    void statesAreFedAndFetchedButNotShown() {
        SequenceStateConfig state =
                new SequenceStateConfig("INPUT_STATE", "OUTPUT_STATE", DataType.INT32, Shape.of(1), null, false);
        try (BackendModel model =
                        load("state_sum", ModelConfig.builder("state_sum").sequence(states(state)));
                ModelInstance invocation = model.newInstance()) {
            assertThat(model.config().inputs()).extracting(TensorSpec::name).containsExactly("INPUT");
            assertThat(model.config().outputs()).extracting(TensorSpec::name).containsExactly("OUTPUT");
            List<Answer> answers = Fixtures.run(
                    invocation,
                    List.of(column("INPUT", 3), column("INPUT_STATE", 4)),
                    List.of("OUTPUT", "OUTPUT_STATE"));
            assertThat(ints(answers.get(1))).containsExactly(7);
        }
        SequenceStateConfig absent =
                new SequenceStateConfig("INPUT_STATE", "NEXT", DataType.INT32, Shape.of(1), null, false);
        assertRefused(
                () -> load("state_sum", ModelConfig.builder("state_sum").sequence(states(absent))),
                "configuration has output 'NEXT' which the model does not have");
    }

    private static ModelConfig.Builder inside(String name, long width, long... stateDims) {
        Shape shape = Shape.of(stateDims);
        return ModelConfig.builder(name)
                .maxBatchSize(0)
                .inputs(List.of(spec("input", DataType.FP32, 1, width), spec("sr", DataType.INT64, 1)))
                .outputs(List.of(spec("output", DataType.FP32, -1, 1)))
                .sequence(states(new SequenceStateConfig(
                        "state", "stateN", DataType.FP32, shape, new InitialStateConfig("silence", shape, ""), false)));
    }

    @Test
    void aStateMayNarrowWhatTheGraphLeavesOpen() {
        try (BackendModel model = load("state_inside", inside("state_inside", 4, 2, 1, 3));
                ModelInstance invocation = model.newInstance()) {
            List<Answer> answers = Fixtures.run(
                    invocation,
                    List.of(
                            floats("input", Shape.of(1, 4), 1, 2, 3, 4),
                            longs("sr", Shape.of(1), 8),
                            floats("state", Shape.of(2, 1, 3), 1, 1, 1, 1, 1, 1)),
                    List.of("output", "stateN"));
            assertThat(answers.get(0).floats()).containsExactly(11f);
            assertThat(answers.get(1).shape()).isEqualTo(Shape.of(2, 1, 3));
            assertThat(answers.get(1).floats()).containsOnly(9f);
        }
        assertRefused(
                () -> load("state_inside", inside("state_inside", 4, 2, 3)),
                "tensor 'state'",
                "the model expects 3 dimensions (shape [2,-1,3]) but the model configuration specifies 2 dimensions");
    }

    @Test
    void aRealVoiceDetectorKeepsItsState() throws Exception {
        Path file = Path.of("../../examples/models/vad/1/model.onnx");
        Assumptions.assumeTrue(Files.exists(file), "NOT TESTED: no " + file + "; fetch it first");
        ModelLocation source = fixtures().source("vad", Files.readAllBytes(file));
        try (BackendModel model = Fixtures.BACKEND.load(
                        source, inside("vad", -1, 2, 1, 128).build(), fixtures().context(Map.of()));
                ModelInstance invocation = model.newInstance()) {
            float[] state = new float[256];
            float first = 0;
            for (int round = 0; round < 3; round++) {
                List<Answer> answers = Fixtures.run(
                        invocation,
                        List.of(
                                floats("input", Shape.of(1, 512), new float[512]),
                                floats("state", Shape.of(2, 1, 128), state),
                                longs("sr", Shape.of(1), 16000)),
                        List.of("output", "stateN"));
                float speech = answers.get(0).floats().get(0);
                assertThat(answers.get(0).shape()).isEqualTo(Shape.of(1, 1));
                assertThat(speech).isBetween(0f, 0.5f);
                // The state changes the score of the same silence in the second round.
                first = round == 0 ? speech : first;
                assertThat(round == 0 || speech != first).isTrue();
                List<Float> next = answers.get(1).floats();
                for (int i = 0; i < state.length; i++) {
                    state[i] = next.get(i);
                }
            }
        }
    }

    private static ModelConfig.Builder ragged(boolean ragged) {
        return ModelConfig.builder("ragged_sum")
                .maxBatchSize(8)
                .inputs(List.of(new TensorSpec("VALUES", DataType.FP32, Shape.of(-1), false, ragged, null)))
                .outputs(List.of(spec("SUM", DataType.FP32, 1)))
                .batchInputs(List.of(new BatchInput(
                        BatchInput.Kind.ACCUMULATED_ELEMENT_COUNT_WITH_ZERO,
                        List.of("BOUNDS"),
                        DataType.INT32,
                        "VALUES")));
    }

    @Test
    void aRaggedInputIsOneFlatTensorWithItsBounds() {
        try (BackendModel model = load("ragged_sum", ragged(true));
                ModelInstance invocation = model.newInstance()) {
            List<Answer> answers = Fixtures.run(
                    invocation,
                    List.of(floats("VALUES", Shape.of(5), 1, 2, 3, 4, 5), ints("BOUNDS", Shape.of(4), 0, 2, 2, 5)),
                    List.of("SUM"));
            assertThat(answers.get(0).floats()).containsExactly(3f, 0f, 12f);
        }
        assertRefused(
                () -> load("ragged_sum", ragged(false)),
                "tensor 'VALUES'",
                "the model expects 1 dimensions (shape [-1])",
                "making complete shape [-1,-1]");
        List<TensorSpec> square = List.of(new TensorSpec("X", DataType.FP32, Shape.of(4), false, true, null));
        assertRefused(
                () -> load("relu", ModelConfig.builder("relu").maxBatchSize(8).inputs(square)),
                "export the model with shape [-1]");
    }

    @Test
    void clientsMayBeShownOtherDimensionsThanTheGraphs() {
        ModelConfig.Builder config = ModelConfig.builder("relu")
                .maxBatchSize(4)
                .inputs(List.of(new TensorSpec("X", DataType.FP32, Shape.of(2, 2), false, false, Shape.of(4))))
                .outputs(List.of(new TensorSpec("Y", DataType.FP32, Shape.of(2, 2), false, false, Shape.of(4))));
        try (BackendModel model = load("relu", config);
                ModelInstance invocation = model.newInstance()) {
            assertThat(model.config().inputs().get(0).shape()).isEqualTo(Shape.of(2, 2));
            assertThat(Fixtures.run(invocation, List.of(floats("X", Shape.of(1, 4), -1, 2, -3, 4)), List.of("Y"))
                            .get(0)
                            .shape())
                    .isEqualTo(Shape.of(1, 4));
        }
    }

    @Test
    void aSingleValueARowIsShownAsAVectorOfOne() {
        try (BackendModel model = load("column", ModelConfig.builder("column"))) {
            TensorSpec x = model.config().inputs().get(0);
            assertThat(x.shape()).isEqualTo(Shape.of(1));
            assertThat(x.modelShape()).isEqualTo(Shape.SCALAR);
            assertThat(Fixtures.run(model, List.of(floats("X", Shape.of(2), 1, 2)))
                            .get(0)
                            .floats())
                    .containsExactly(-1f, -2f);
        }
    }

    @Test
    void withoutCompletionTheConfigurationMustBeWhole() {
        TensorSpec x = spec("X", DataType.FP32, 4);
        TensorSpec y = spec("Y", DataType.FP32, 4);
        assertRefused(
                () -> check("relu", ModelConfig.builder("relu")), "configuration expects 0 inputs, model provides 1");
        assertRefused(
                () -> check("relu", ModelConfig.builder("relu").maxBatchSize(4).inputs(List.of(x))),
                "configuration expects 0 outputs, model provides 1");
        try (BackendModel model = check(
                "relu",
                ModelConfig.builder("relu").maxBatchSize(4).inputs(List.of(x)).outputs(List.of(y)))) {
            assertThat(model.config().batching()).isNull();
            assertThat(model.config().platform()).isEqualTo("onnxruntime_onnx");
        }
    }

    @Test
    void aSchedulerThatIsChosenStays() {
        DynamicBatching chosen = new DynamicBatching(List.of(2), Duration.ofMillis(1), true);
        try (BackendModel model = load("relu", ModelConfig.builder("relu").batching(chosen))) {
            assertThat(model.config().batching()).isEqualTo(chosen);
            assertThat(model.config().maxBatchSize()).isEqualTo(4);
        }
    }

    @Test
    void optionalInputsThatTheGraphNeedsAreRefused() {
        List<TensorSpec> optional = List.of(new TensorSpec("X", DataType.FP32, Shape.of(4), true));
        assertRefused(
                () -> load("relu", ModelConfig.builder("relu").maxBatchSize(4).inputs(optional)),
                "input 'X' is optional in the configuration, but the model needs it");
    }

    @Test
    void aGpuIsRefusedWhereThereIsNone() {
        InstanceGroup gpu = new InstanceGroup("relu_0", InstanceGroup.Kind.GPU, 1, List.of(), false, "", List.of(), 0);
        ModelConfig.Builder config = ModelConfig.builder("relu").instanceGroups(List.of(gpu));
        assertRefused(
                () -> load("relu", config),
                "instance group relu_0 of model relu has kind KIND_GPU but server does not support GPUs");
        ModelConfig built = config.build();
        assertThat(ExecutionProviders.of(
                                fixtures().source("relu"), built, GpuOptions.read(built), Set.of(OrtProvider.CUDA))
                        .on(0, Map.of(), null)
                        .names())
                .isEqualTo("cuda, cpu");
        assertThat(ExecutionProviders.gpus(built)).containsExactly(0);
        assertThat(ExecutionProviders.onProcessors(built)).isFalse();
        InstanceGroup auto =
                new InstanceGroup("relu_0", InstanceGroup.Kind.AUTO, 3, List.of(), false, "", List.of(), 0);
        try (BackendModel model = load("relu", config.instanceGroups(List.of(auto)))) {
            assertThat(model.config().instances()).isEqualTo(3);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "true, openvino, OpenVINO Execution Accelerator is not enabled",
        "true, opnvino, unknown Execution Accelerator 'opnvino' is requested",
        "false, tensorrt, TensorRT Execution Accelerator is not enabled",
        "false, magic, unknown Execution Accelerator 'magic' is requested"
    })
    void acceleratorsThatAreNotThereAreRefused(boolean cpu, String name, String text) {
        List<ExecutionAccelerator> one = List.of(new ExecutionAccelerator(name, Map.of()));
        OptimizationPolicy wish =
                cpu ? new OptimizationPolicy(0, one, List.of()) : new OptimizationPolicy(0, List.of(), one);
        assertRefused(() -> load("relu", ModelConfig.builder("relu").optimization(wish)), text);
    }

    @ParameterizedTest
    @CsvSource({"-1, BASIC_OPT", "1, EXTENDED_OPT", "2, NO_OPT", "0, ALL_OPT"})
    void graphLevelsAreTritons(int level, String expected) {
        assertThat(OrtSettings.read(Map.of(), level, 2, Map.of(), false).level())
                .hasToString(expected);
    }

    @Test
    void settingsAndTheEnginesOwnOptionsHold() {
        assertRefused(() -> OrtSettings.read(Map.of(), 3, 2, Map.of(), false), "optimization.graph.level", "but got 3");
        assertRefused(() -> OrtSettings.read(Map.of("gpu_mem_limit", "1"), 2), "is for runs on a GPU");
        OrtSettings settings = OrtSettings.read(
                Map.of("session.disable_prepacking", "1", "TRITON_BATCH_STRATEGY_PATH", "x"),
                0,
                4,
                Map.of("intra_op_thread_count", "2"),
                false);
        assertThat(settings.entries()).containsEntry("session.disable_prepacking", "1");
        assertThat(settings.intraThreads()).isEqualTo(2);
        ModelLocation source = fixtures().source("relu");
        assertRefused(
                () -> Fixtures.BACKEND.load(
                        source,
                        ModelConfig.unspecified("relu"),
                        fixtures().context(Map.of("enable-global-threadpool", "1"))),
                "set intra_op_thread_count for more");
    }

    @Test
    void operatorLibrariesLieInTheModelsDirectory() throws Exception {
        ModelLocation source = fixtures().source("relu");
        ModelConfig.Builder config = ModelConfig.builder("relu");
        assertRefused(
                () -> Fixtures.BACKEND.load(
                        source,
                        config.operatorLibraries(List.of("libmine.so")).build(),
                        fixtures().context(Map.of())),
                "needs the operators in 'libmine.so'",
                "put the library there");
        Files.writeString(root.resolve("outside.so"), "x");
        assertRefused(
                () -> Fixtures.BACKEND.load(
                        source,
                        config.operatorLibraries(List.of("../outside.so")).build(),
                        fixtures().context(Map.of())),
                "lies outside the model's directory");
        Files.createSymbolicLink(source.modelDirectory().resolve("link.so"), root.resolve("outside.so"));
        assertRefused(
                () -> Fixtures.BACKEND.load(
                        source,
                        config.operatorLibraries(List.of("link.so")).build(),
                        fixtures().context(Map.of())),
                "lies outside the model's directory");
        Files.writeString(source.versionDirectory().resolve("libmine.so"), "no library");
        assertRefused(
                () -> Fixtures.BACKEND.load(
                        source,
                        config.operatorLibraries(List.of("libmine.so")).build(),
                        fixtures().context(Map.of())),
                "cannot load the operators in",
                "libmine.so",
                "must be built for this machine");
        String module = "_extensions_pydll.cpython-311-x86_64-linux-gnu.so";
        Files.writeString(source.versionDirectory().resolve(module), "no library");
        assertRefused(
                () -> Fixtures.BACKEND.load(
                        source,
                        config.operatorLibraries(List.of(module)).build(),
                        fixtures().context(Map.of())),
                "cannot load the operators in",
                "is a module for Python");
    }

    @Test
    void operatorsOfALibraryRunAsLongAsTheModelIsLoaded() throws Exception {
        String entry = "/ai/onnxruntime/extensions/native/linux-x64/libonnxruntime_extensions4j_jni.so";
        Assumptions.assumeTrue(OrtLibrary.platform().equals("linux-x64"), "NOT TESTED: the library is for linux-x64");
        ModelLocation source = fixtures().source("string_upper");
        try (InputStream library = Objects.requireNonNull(OnnxConfigTest.class.getResourceAsStream(entry))) {
            Files.copy(library, source.modelDirectory().resolve("operators.so"));
        }
        assertRefused(() -> load("string_upper", ModelConfig.builder("string_upper")), "StringUpper");
        ModelConfig config = ModelConfig.builder("string_upper")
                .operatorLibraries(List.of("operators.so"))
                .build();
        try (BackendModel model =
                Fixtures.BACKEND.load(source, config, fixtures().context(Map.of()))) {
            for (int round = 0; round < 3; round++) {
                assertThat(Fixtures.run(
                                        model,
                                        List.of(Fixtures.strings(
                                                "X", Shape.of(1, 2), Fixtures.utf8("abc"), Fixtures.utf8("Grün"))))
                                .get(0)
                                .strings())
                        .containsExactly("ABC", "GRüN");
            }
        }
    }
}
