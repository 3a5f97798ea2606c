// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import static io.nereid.backends.tensorflow.Models.ask;
import static io.nereid.backends.tensorflow.Models.floats;
import static io.nereid.backends.tensorflow.Models.load;
import static io.nereid.backends.tensorflow.Models.texts;
import static io.nereid.backends.tensorflow.Models.utf8;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Functions of TensorFlow 2, all types, strings, state, graphs, tags, default values; and memory that is released. */
@Engine
class ModelsOfManyKindsTest {
    @TempDir
    Path directory;

    @Test
    void functionsAreBatchedAndTheirShapesBind() {
        try (BackendModel model = load("functions");
                ModelInstance run = model.newInstance()) {
            assertThat(model.config().maxBatchSize()).isEqualTo(4);
            assertThat(model.config().batching()).isNotNull();
            TensorSpec x = model.config().inputs().get(0);
            assertThat(x.shape()).isEqualTo(Shape.of(3));
            assertThat(x.unchecked()).isFalse();
            assertThat(ask(run, "product", floats("x", Shape.of(2, 3), 1, 1, 1, 0, 0, 2))
                            .values())
                    .containsExactly(6, 60, 6, 60);
            assertThat(ask(run, "rows", floats("x", Shape.of(2, 3), 1, 1, 1, 0, 0, 2))
                            .values())
                    .containsExactly(3, 2);
            assertThatThrownBy(() -> ask(run, "product", floats("x", Shape.of(2, 4), 1, 1, 1, 0, 0, 2, 1, 1)))
                    .isInstanceOfSatisfying(ServingException.class, e -> {
                        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                        assertThat(e.getMessage()).contains("[2,4]").contains("[-1,3]");
                    });
        }
    }

    @Test
    void shapesNeedNotBind() {
        try (BackendModel model =
                        load("two_tags", ModelConfig.unspecified("two_tags"), Map.of("check-shapes", "false"));
                ModelInstance run = model.newInstance()) {
            assertThat(model.config().maxBatchSize()).isZero();
            assertThat(model.config().inputs()).allMatch(TensorSpec::unchecked);
            assertThat(ask(run, "y", floats("x", Shape.of(1, 2), 4, 9)).shape()).isEqualTo(Shape.of(1, 2));
        }
    }

    @Test
    void loopsAndAssertionsRunOnTheThreadThatCalls() {
        try (BackendModel model = load("functions");
                ModelInstance loop = model.newInstance("collatz");
                ModelInstance positive = model.newInstance("positive")) {
            Tensor n = Tensor.allocate("n", DataType.INT64, Shape.of(3));
            n.buffer().putLong(0, 1).putLong(8, 6).putLong(16, 27);
            List<Tensor> steps = loop.run(List.of(n), List.of("steps"));
            assertThat(steps.get(0).buffer().getLong(0)).isZero();
            assertThat(steps.get(0).buffer().getLong(8)).isEqualTo(8);
            assertThat(steps.get(0).buffer().getLong(16)).isEqualTo(111);
            Tensor.closeAll(steps);
            n.close();
            assertThat(ask(positive, "root", floats("x", 4)).values()).containsExactly(2);
            assertThatThrownBy(() -> ask(positive, "root", floats("x", -4)))
                    .isInstanceOfSatisfying(ServingException.class, e -> {
                        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                        assertThat(e.getMessage()).contains("x must be positive");
                    });
        }
    }

    @Test
    void stringsComeBackByteForByte() {
        Random random = new Random(1);
        List<byte[]> given = new ArrayList<>();
        given.add(new byte[0]);
        given.add(new byte[] {0, 1, 2, 0});
        given.add(utf8("\uD83D\uDC1A nereid"));
        for (int length : new int[] {1, 21, 22, 23, 24, 63, 64, 255, 256, 70_000}) {
            byte[] bytes = new byte[length];
            random.nextBytes(bytes);
            given.add(bytes);
        }
        try (BackendModel model = load("echo");
                ModelInstance run = model.newInstance();
                Tensor input = texts("text", given.toArray(byte[][]::new))) {
            for (int i = 0; i < 3; i++) {
                List<Tensor> results = run.run(List.of(input), List.of("text", "length"));
                assertThat(texts(results.get(0))).containsExactlyElementsOf(given);
                assertThat(results.get(0).shape()).isEqualTo(Shape.of(given.size()));
                for (int k = 0; k < given.size(); k++) {
                    assertThat(results.get(1).buffer().getInt(4 * k)).isEqualTo(given.get(k).length);
                }
                Tensor.closeAll(results);
            }
        }
        assertThat(BorrowedMemory.ofProcess().open()).isZero();
    }

    @Test
    void stringsThatDoNotMatchTheirShapeAreRefused() {
        try (BackendModel model = load("echo");
                ModelInstance run = model.newInstance();
                Tensor tooFew = texts("text", Shape.of(3), utf8("a long text that is not held in place"), utf8("b"));
                Tensor tooMany = texts("text", Shape.of(1), utf8("a"), utf8("b"));
                Tensor none = texts("text", Shape.of(0))) {
            for (Tensor wrong : List.of(tooFew, tooMany)) {
                assertThatThrownBy(() -> run.run(List.of(wrong), List.of("text")))
                        .isInstanceOf(ServingException.class)
                        .hasMessageContaining("length-prefixed");
            }
            List<Tensor> results = run.run(List.of(none), List.of("text", "length"));
            assertThat(results).extracting(Tensor::shape).containsOnly(Shape.of(0));
            Tensor.closeAll(results);
        }
    }

    @Test
    void everyTypeOfTheWireComesBack() {
        Map<String, DataType> types = Map.ofEntries(
                Map.entry("bool", DataType.BOOL),
                Map.entry("uint8", DataType.UINT8),
                Map.entry("uint16", DataType.UINT16),
                Map.entry("uint32", DataType.UINT32),
                Map.entry("uint64", DataType.UINT64),
                Map.entry("int8", DataType.INT8),
                Map.entry("int16", DataType.INT16),
                Map.entry("int32", DataType.INT32),
                Map.entry("int64", DataType.INT64),
                Map.entry("float16", DataType.FP16),
                Map.entry("bfloat16", DataType.BF16),
                Map.entry("float32", DataType.FP32),
                Map.entry("float64", DataType.FP64),
                Map.entry("string", DataType.BYTES));
        try (BackendModel model = load("echo");
                ModelInstance run = model.newInstance("types")) {
            Signature signature = model.signatures().get("types");
            assertThat(signature.inputs()).hasSize(types.size()).allMatch(TensorSpec::unchecked);
            for (int elements : new int[] {0, 2, 40_000}) {
                List<Tensor> inputs = new ArrayList<>();
                for (TensorSpec spec : signature.inputs()) {
                    assertThat(spec.dataType()).isEqualTo(types.get(spec.name()));
                    inputs.add(filled(spec, elements));
                }
                List<String> wanted =
                        signature.inputs().stream().map(s -> s.name() + "_out").toList();
                List<Tensor> results = run.run(inputs, wanted);
                for (int i = 0; i < inputs.size(); i++) {
                    assertThat(results.get(i).name()).isEqualTo(wanted.get(i));
                    assertThat(results.get(i).shape()).isEqualTo(inputs.get(i).shape());
                    assertThat(results.get(i).buffer()).isEqualTo(inputs.get(i).buffer());
                }
                // A result may share the input's memory, which then stays allocated until the result is closed.
                Tensor.closeAll(inputs);
                assertThat(results.get(wanted.indexOf("uint8_out")).byteLength())
                        .isEqualTo(elements);
                Tensor.closeAll(results);
            }
        }
        assertThat(BorrowedMemory.ofProcess().open()).isZero();
    }

    private static Tensor filled(TensorSpec spec, int elements) {
        if (spec.dataType() == DataType.BYTES) {
            byte[][] texts = new byte[elements][];
            for (int i = 0; i < elements; i++) {
                texts[i] = utf8("text number " + i + (i % 2 == 0 ? "" : ", which is a longer one than others"));
            }
            return texts(spec.name(), Shape.of(1, elements), texts);
        }
        Tensor tensor = Tensor.allocate(spec.name(), spec.dataType(), Shape.of(1, elements));
        for (int i = 0; i < tensor.byteLength(); i++) {
            tensor.buffer().put(i, (byte) (spec.dataType() == DataType.BOOL ? i & 1 : i & 0x3f));
        }
        return tensor;
    }

    @Test
    void whatAVariableKeepsStaysWhatItWas() {
        int large = 100_000;
        try (BackendModel model = load("keeper");
                ModelInstance keep = model.newInstance("keep");
                ModelInstance kept = model.newInstance("kept")) {
            Tensor numbers = Tensor.allocate("numbers", DataType.FP32, Shape.of(large));
            for (int i = 0; i < large; i++) {
                numbers.buffer().putFloat(4 * i, i);
            }
            Tensor texts = texts("texts", utf8("a text that is longer than twenty-two bytes"), utf8("short"));
            Tensor.closeAll(keep.run(List.of(numbers, texts), List.of("numbers", "texts")));
            numbers.close();
            texts.close();
            // Released memory is reused.
            List<MemoryRegion> others = new ArrayList<>();
            for (int i = 0; i < 8; i++) {
                others.add(MemoryRegion.allocate(4 * large).zero());
                others.add(MemoryRegion.allocate(48).zero());
            }
            List<Tensor> results = kept.run(List.of(), List.of("numbers", "texts"));
            float[] values = floats(results.get(0));
            assertThat(values).hasSize(large);
            for (int i = 0; i < large; i++) {
                assertThat(values[i]).isEqualTo(i);
            }
            assertThat(texts(results.get(1)))
                    .containsExactly(utf8("a text that is longer than twenty-two bytes"), utf8("short"));
            Tensor.closeAll(results);
            others.forEach(MemoryRegion::release);
        }
        assertThat(BorrowedMemory.ofProcess().open()).isZero();
    }

    @Test
    void aGraphIsServedByItsEnds() {
        try (BackendModel model = load("graph");
                ModelInstance run = model.newInstance()) {
            assertThat(model.config().platform()).isEqualTo("tensorflow_graphdef");
            assertThat(model.config().inputs()).extracting(TensorSpec::name).containsExactly("INPUT0", "INPUT1");
            assertThat(model.config().outputs()).extracting(TensorSpec::name).containsExactly("OUTPUT0", "OUTPUT1");
            assertThat(ask(
                                    run,
                                    "OUTPUT1",
                                    floats("INPUT1", Shape.of(1, 4), 1, 1, 1, 1),
                                    floats("INPUT0", Shape.of(1, 4), 1, 2, 3, 4))
                            .values())
                    .containsExactly(0, 1, 2, 3);
        }
    }

    @Test
    void theTagsChooseTheGraph() {
        try (BackendModel model = load("two_tags");
                ModelInstance run = model.newInstance()) {
            assertThat(ask(run, "y", floats("x", 1)).values()).containsExactly(2);
        }
        ModelConfig other = ModelConfig.builder("two_tags")
                .parameters(Map.of("TF_GRAPH_TAG", "other, serve"))
                .build();
        try (BackendModel model = load("two_tags", other);
                ModelInstance run = model.newInstance()) {
            assertThat(ask(run, "y", floats("x", 1)).values()).containsExactly(3);
        }
        ModelConfig wrong = ModelConfig.builder("two_tags")
                .parameters(Map.of("TF_GRAPH_TAG", "tpu"))
                .build();
        assertThatThrownBy(() -> load("two_tags", wrong))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("no graph with the tags 'tpu' (it has 'serve', 'other,serve')");
    }

    @Test
    void anInputWithADefaultMayBeLeftOutAndASparseSignatureIs() {
        try (BackendModel model = load("defaults");
                ModelInstance run = model.newInstance()) {
            assertThat(model.signatures()).containsOnlyKeys("serving_default");
            assertThat(model.config().inputs())
                    .extracting(TensorSpec::name, TensorSpec::optional)
                    .containsExactly(
                            org.assertj.core.groups.Tuple.tuple("by", true),
                            org.assertj.core.groups.Tuple.tuple("x", false));
            assertThat(ask(run, "y", floats("x", 1, 2)).values()).containsExactly(3, 6);
            assertThat(ask(run, "y", floats("x", 1, 2), floats("by", Shape.SCALAR, 4))
                            .values())
                    .containsExactly(4, 8);
            assertThatThrownBy(() -> ask(run, "y", floats("by", Shape.SCALAR, 4)))
                    .isInstanceOf(ServingException.class)
                    .hasMessageContaining("input 'x'");
        }
    }

    @Test
    void theDefaultSignatureCanBeChosen() {
        ModelConfig config = ModelConfig.builder("functions")
                .parameters(Map.of("TF_SIGNATURE_DEF", "collatz"))
                .build();
        try (BackendModel model = load("functions", config)) {
            assertThat(model.config().inputs()).extracting(TensorSpec::name).containsExactly("n");
            assertThat(model.signatures().get("serving_default").inputs())
                    .isEqualTo(model.config().inputs());
        }
        ModelConfig wrong = ModelConfig.builder("functions")
                .parameters(Map.of("TF_SIGNATURE_DEF", "colatz"))
                .build();
        assertThatThrownBy(() -> load("functions", wrong))
                .isInstanceOfSatisfying(
                        ServingException.class,
                        e -> assertThat(e.describe()).contains("'colatz'").contains("collatz"));
    }

    @Test
    void aModelThatCannotBeBatchedSaysWhy() {
        ModelConfig config = ModelConfig.builder("counter").maxBatchSize(8).build();
        assertThatThrownBy(() -> load("counter", config)).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.describe()).contains("get_counter").contains("max_batch_size");
        });
        ModelConfig unchecked =
                ModelConfig.builder("half_plus_two").maxBatchSize(8).build();
        try (BackendModel model = load("half_plus_two", unchecked)) {
            assertThat(model.config().inputs().get(0).shape()).isEqualTo(Shape.of(1));
        }
    }

    @Test
    void aConfigurationThatContradictsTheModelIsRefused() {
        ModelConfig type = ModelConfig.builder("functions")
                .inputs(List.of(new TensorSpec("x", DataType.INT32, Shape.of(3))))
                .build();
        assertThatThrownBy(() -> load("functions", type)).hasMessageContaining("TYPE_FP32");
        ModelConfig name = ModelConfig.builder("functions")
                .inputs(List.of(new TensorSpec("z", DataType.FP32, Shape.of(3))))
                .build();
        assertThatThrownBy(() -> load("functions", name)).hasMessageContaining("'z'");
        assertThatThrownBy(
                        () -> load("functions", ModelConfig.unspecified("functions"), Map.of("check-shape", "false")))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.describe()).contains("check-shapes"));
    }

    /** As TensorFlow Serving's own half_plus_three has it, whose examples are declared as numbers. */
    @Test
    void aTensorThatIsDeclaredWithAnotherTypeHasTheGraphs() throws Exception {
        Path version = Files.createDirectories(directory.resolve("half")).resolve("1");
        Models.copy(Models.root().resolve("half_plus_two/1"), version);
        byte[] file = Files.readAllBytes(version.resolve("saved_model.pb"));
        String bytes = new String(file, java.nio.charset.StandardCharsets.ISO_8859_1);
        String declared = "\n\u000ctf_example:0\u0010";
        assertThat(bytes).contains(declared + "\u0007");
        Files.write(
                version.resolve("saved_model.pb"),
                bytes.replace(declared + "\u0007", declared + "\u0001")
                        .getBytes(java.nio.charset.StandardCharsets.ISO_8859_1));
        try (BackendModel model = Models.BACKEND.load(
                        Models.source("half", directory),
                        ModelConfig.unspecified("half"),
                        new io.nereid.backend.BackendContext(2, directory, Map.of()));
                ModelInstance run = model.newInstance("regress_x_to_y")) {
            assertThat(model.signatures().get("regress_x_to_y").inputs().get(0).dataType())
                    .isEqualTo(DataType.BYTES);
            assertThat(ask(run, "outputs", Models.texts("inputs", Models.example(Map.of("x", 80f))))
                            .values())
                    .containsExactly(42f);
        }
    }

    @Test
    void aSavedModelWithoutItsVariablesSaysWhatIsMissing() throws Exception {
        Path version = Files.createDirectories(directory.resolve("half/1"));
        Files.copy(Models.root().resolve("half_plus_two/1/saved_model.pb"), version.resolve("saved_model.pb"));
        assertThatThrownBy(() -> Models.BACKEND.load(
                        Models.source("half", directory),
                        ModelConfig.unspecified("half"),
                        new io.nereid.backend.BackendContext(2, directory, Map.of())))
                .isInstanceOfSatisfying(ServingException.class, e -> {
                    assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                    assertThat(e.describe()).contains("variables");
                });
    }

    @Test
    void loadingAndUnloadingLeavesNothingBehind() throws Exception {
        for (int i = 0; i < 20; i++) {
            use();
        }
        long before = resident();
        for (int i = 0; i < 50; i++) {
            use();
        }
        long grown = resident() - before;
        assertThat(grown).describedAs("KiB more after 50 loads").isLessThan(24 * 1024);
        assertThat(BorrowedMemory.ofProcess().open()).isZero();
    }

    private static void use() {
        try (BackendModel model = load("functions");
                ModelInstance run = model.newInstance()) {
            int rows = 20_000;
            Tensor x = Tensor.allocate("x", DataType.FP32, Shape.of(rows, 3));
            x.region().zero();
            Tensor.closeAll(run.run(List.of(x), List.of("product", "rows")));
            x.close();
        }
        try (BackendModel model = load("echo");
                ModelInstance run = model.newInstance()) {
            byte[][] texts = new byte[1000][];
            java.util.Arrays.fill(texts, new byte[1000]);
            Tensor text = texts("text", texts);
            Tensor.closeAll(run.run(List.of(text), List.of("text")));
            text.close();
        }
    }

    private static long resident() throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("[^0-9]", ""));
            }
        }
        throw new IllegalStateException();
    }
}
