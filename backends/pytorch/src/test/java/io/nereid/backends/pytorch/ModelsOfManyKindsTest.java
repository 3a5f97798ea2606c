// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.pytorch;

import static io.nereid.backends.pytorch.Models.ask;
import static io.nereid.backends.pytorch.Models.floats;
import static io.nereid.backends.pytorch.Models.load;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@Engine
class ModelsOfManyKindsTest {
    @TempDir
    Path directory;

    private static List<Tensor> answers(ModelInstance run, List<String> outputs, Tensor... inputs) {
        try {
            return run.run(List.of(inputs), outputs);
        } finally {
            Tensor.closeAll(List.of(inputs));
        }
    }

    private static Tensor longs(String name, Shape shape, long... values) {
        Tensor tensor = Tensor.allocate(name, DataType.INT64, shape);
        tensor.buffer().asLongBuffer().put(values);
        return tensor;
    }

    private static Tensor doubles(String name, double value) {
        Tensor tensor = Tensor.allocate(name, DataType.FP64, Shape.of(1));
        tensor.buffer().putDouble(value);
        return tensor;
    }

    @Test
    void halfPlusTwoTakesAnyShape() {
        try (BackendModel model = load("half_plus_two");
                ModelInstance run = model.newInstance()) {
            assertThat(ask(run, "OUTPUT__0", floats("x", 1, 2, 5)).values()).containsExactly(2.5f, 3f, 4.5f);
            assertThat(ask(run, "OUTPUT__0", floats("x", Shape.of(2, 2), 1, 2, 3, 4))
                            .shape())
                    .isEqualTo(Shape.of(2, 2));
            assertThat(ask(run, "OUTPUT__0", floats("x", Shape.SCALAR, 4)).values())
                    .containsExactly(4f);
            assertThat(ask(run, "OUTPUT__0", floats("x", Shape.of(0, 3))).shape())
                    .isEqualTo(Shape.of(0, 3));
        }
    }

    @Test
    void aTracedNetGivesWhatPythonGave() {
        try (BackendModel model = load("net");
                ModelInstance run = model.newInstance()) {
            // h = relu(W1 x + b1), W1 = 0..11 / 4 in rows of 4, b1 = 0 1 2; out = W2 h + b2, W2 = 0..5 / 4, b2 = 0 1.
            assertThat(ask(run, "OUTPUT__0", floats("x", Shape.of(1, 4), 1, 2, 3, 4))
                            .values())
                    .containsExactly(17.5f, 54.5f);
        }
    }

    @Test
    void theModuleMayHaveAnyNameInItsCode(@TempDir Path directory) throws Exception {
        Models.withAnotherModuleName(Models.root().resolve("net/1/model.pt"), directory.resolve("net/1"));
        try (BackendModel model = Models.BACKEND.load(
                        Models.source("net", directory),
                        ModelConfig.unspecified("net"),
                        new BackendContext(2, directory, Map.of()));
                ModelInstance run = model.newInstance()) {
            assertThat(model.config().inputs()).extracting(TensorSpec::name).containsExactly("x");
            assertThat(ask(run, "OUTPUT__0", floats("x", Shape.of(1, 4), 1, 2, 3, 4))
                            .values())
                    .containsExactly(17.5f, 54.5f);
        }
    }

    @Test
    void anOutputWithoutConfigurationHasTheTypeThatTheModelGivesIt() {
        try (BackendModel model = load("grown");
                ModelInstance run = model.newInstance()) {
            assertThat(model.traits().ownOutputs()).isTrue();
            assertThat(model.config().outputs()).allMatch(TensorSpec::unchecked);
            List<Tensor> grown = answers(run, List.of("OUTPUT__0"), floats("size", Shape.SCALAR, 3));
            assertThat(grown).extracting(Tensor::dataType).containsExactly(DataType.INT64);
            Tensor.closeAll(grown);
        }
    }

    @Test
    void aDictIsFoundByItsKeysInTheWantedOrder() {
        try (BackendModel model = load("scores");
                ModelInstance run = model.newInstance()) {
            assertThat(model.config().outputs()).extracting(TensorSpec::name).containsExactly("probabilities", "label");
            List<Tensor> all = answers(run, List.of("label", "probabilities"), floats("logits", Shape.of(1, 2), 0, 0));
            assertThat(all).extracting(Tensor::dataType).containsExactly(DataType.INT64, DataType.FP32);
            assertThat(Models.floats(all.get(1))).containsExactly(0.5f, 0.5f);
            Tensor.closeAll(all);
        }
    }

    @Test
    void tuplesNamedTuplesAndListsAreFoundByTheirPlaces() {
        try (BackendModel model = load("extremes");
                ModelInstance run = model.newInstance()) {
            assertThat(ask(run, "greatest", floats("values", Shape.of(1, 3), 1, 7, 3))
                            .values())
                    .containsExactly(7f);
        }
        try (BackendModel model = load("many");
                ModelInstance run = model.newInstance()) {
            assertThat(ask(run, "OUTPUT__2", floats("x", 1)).values()).containsExactly(4f);
        }
    }

    @Test
    void argumentsWithDefaultsMayBeLeftOut() {
        try (BackendModel model = load("options");
                ModelInstance run = model.newInstance()) {
            assertThat(ask(run, "OUTPUT__0", floats("x", 1, 2)).values()).containsExactly(1f, 2f);
            assertThat(ask(run, "OUTPUT__0", floats("x", 1, 2), floats("mask", 0, 1))
                            .values())
                    .containsExactly(0f, 2f);
            assertThat(ask(run, "OUTPUT__0", floats("x", 1, 2), longs("times", Shape.of(1), 3))
                            .values())
                    .describedAs("those before it have their defaults")
                    .containsExactly(3f, 6f);
            assertThat(ask(run, "OUTPUT__0", floats("x", 1, 2), doubles("scale", 0.5))
                            .values())
                    .containsExactly(0.5f, 1f);
            assertThatThrownBy(() -> ask(run, "OUTPUT__0", floats("x", 1), longs("times", Shape.of(2), 1, 2)))
                    .isInstanceOfSatisfying(ServingException.class, e -> {
                        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                        assertThat(e.getMessage()).contains("'times'").contains("one element");
                    });
        }
    }

    private static ModelConfig config(String name, List<TensorSpec> inputs, List<TensorSpec> outputs) {
        return ModelConfig.builder(name).inputs(inputs).outputs(outputs).build();
    }

    private static TensorSpec spec(String name, DataType type) {
        return new TensorSpec(name, type, Shape.of(-1));
    }

    @Test
    void inputsBecomeADictOrAListWhereTheMethodTakesOne() {
        ModelConfig dict = config(
                "takes_dict",
                List.of(spec("a", DataType.FP32), spec("b", DataType.FP32)),
                List.of(spec("OUTPUT__0", DataType.FP32)));
        try (BackendModel model = load("takes_dict", dict);
                ModelInstance run = model.newInstance()) {
            assertThat(ask(run, "OUTPUT__0", floats("a", 1), floats("b", 2)).values())
                    .containsExactly(12f);
        }
        ModelConfig list = config(
                "takes_list",
                List.of(spec("PART__1", DataType.FP32), spec("PART__0", DataType.FP32)),
                List.of(spec("whole", DataType.FP32)));
        try (BackendModel model = load("takes_list", list);
                ModelInstance run = model.newInstance()) {
            assertThat(ask(run, "whole", floats("PART__1", 2), floats("PART__0", 1))
                            .values())
                    .containsExactly(1f, 2f);
        }
    }

    @Test
    void textsAndNumbersAreAnswersToo() {
        ModelConfig texts =
                config("texts", List.of(spec("texts", DataType.BYTES)), List.of(spec("OUTPUT__0", DataType.BYTES)));
        try (BackendModel model = load("texts", texts);
                ModelInstance run = model.newInstance()) {
            List<Tensor> all =
                    answers(run, List.of("OUTPUT__0"), Models.texts("texts", Models.utf8("é"), Models.utf8("")));
            assertThat(Models.texts(all.get(0))).containsExactly(Models.utf8("é!"), Models.utf8("!"));
            Tensor.closeAll(all);
            assertThatThrownBy(() -> answers(run, List.of("OUTPUT__0"), Models.texts("texts", Models.utf8("😀"))))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
        }
        try (BackendModel model = load("numbers");
                ModelInstance run = model.newInstance()) {
            List<Tensor> all = answers(
                    run,
                    List.of("OUTPUT__0", "OUTPUT__1", "OUTPUT__2", "OUTPUT__3", "OUTPUT__4"),
                    floats("x", Shape.of(1, 3), 1, 2, 3));
            assertThat(all.get(0).buffer().getLong()).isEqualTo(3);
            assertThat(all.get(1).buffer().getDouble()).isEqualTo(6.0);
            assertThat(all.get(2).buffer().get()).isEqualTo((byte) 1);
            assertThat(Models.texts(all.get(3))).containsExactly(Models.utf8("text"));
            assertThat(all.get(4).shape()).isEqualTo(Shape.of(2));
            Tensor.closeAll(all);
        }
    }

    /** The binding would terminate the process for some of these types. */
    @ParameterizedTest
    @EnumSource(value = DataType.class, mode = EnumSource.Mode.EXCLUDE, names = "BYTES")
    void everyTypeGoesThroughUnharmed(DataType type) {
        ModelConfig config = config("identity", List.of(spec("x", type)), List.of(spec("OUTPUT__0", type)));
        try (BackendModel model = load("identity", config);
                ModelInstance run = model.newInstance()) {
            byte[] bytes = new byte[6 * type.size()];
            for (int i = 0; i < bytes.length; i++) {
                bytes[i] = (byte) (type == DataType.BOOL ? i % 2 : type.isFloatingPoint() ? 0x3c + i % 3 : 0xf0 + i);
            }
            Tensor x = Tensor.over(
                    "x", type, Shape.of(2, 3), MemoryRegion.copyOf(bytes, 0, bytes.length), 0, bytes.length);
            List<Tensor> all = answers(run, List.of("OUTPUT__0"), x);
            byte[] back = new byte[bytes.length];
            all.get(0).buffer().get(back);
            assertThat(all.get(0).dataType()).isEqualTo(type);
            assertThat(all.get(0).shape()).isEqualTo(Shape.of(2, 3));
            assertThat(back).isEqualTo(bytes);
            Tensor.closeAll(all);
        }
    }

    @Test
    void halvesOfBothKindsComeOut() {
        try (BackendModel model = load("half");
                ModelInstance run = model.newInstance()) {
            List<Tensor> all = answers(run, List.of("OUTPUT__0", "OUTPUT__1"), floats("x", 1, -2));
            assertThat(all).extracting(Tensor::dataType).containsExactly(DataType.FP16, DataType.BF16);
            assertThat(all.get(0).buffer().getShort(2)).isEqualTo((short) 0xc000);
            assertThat(all.get(1).buffer().getShort(0)).isEqualTo((short) 0x3f80);
            assertThat(all.get(1).buffer().getShort(2)).isEqualTo((short) 0xc000);
            Tensor.closeAll(all);
        }
    }

    @Test
    void elementsComeInOrderWhateverTheStrides() {
        try (BackendModel model = load("transposed");
                ModelInstance run = model.newInstance()) {
            Models.Answer answer = ask(run, "OUTPUT__0", floats("x", Shape.of(2, 3), 1, 2, 3, 4, 5, 6));
            assertThat(answer.shape()).isEqualTo(Shape.of(3, 2));
            assertThat(answer.values()).containsExactly(1f, 4f, 2f, 5f, 3f, 6f);
        }
    }

    @Test
    void anInputInTheMiddleOfItsMemoryIsReadFromThere() {
        try (BackendModel model = load("half_plus_two");
                ModelInstance run = model.newInstance();
                Tensor rows = floats("x", Shape.of(4, 4), 0, 0, 0, 0, 0, 0, 0, 0, 2, 4, 6, 8, 0, 0, 0, 0)) {
            Tensor third = rows.retainSlice(Shape.of(1, 4), 32, 16);
            assertThat(ask(run, "OUTPUT__0", third).values()).containsExactly(3f, 4f, 5f, 6f);
        }
    }

    @Test
    void whatTheCodeChangesIsNotTheClientsMemory() {
        try (BackendModel model = load("in_place");
                ModelInstance run = model.newInstance();
                Tensor x = floats("x", 1, 2)) {
            List<Tensor> all = run.run(List.of(x), List.of("OUTPUT__0"));
            assertThat(Models.floats(all.get(0))).containsExactly(2f, 3f);
            assertThat(Models.floats(x)).containsExactly(1f, 2f);
            Tensor.closeAll(all);
        }
    }

    @Test
    void largeResultsOutliveTheirModelAndTheInputTheyWereMadeFrom() {
        Tensor result;
        Tensor same;
        try (BackendModel model = load("grown");
                ModelInstance run = model.newInstance();
                BackendModel identity = load("identity");
                ModelInstance through = identity.newInstance()) {
            result = answers(run, List.of("OUTPUT__0"), longs("size", Shape.SCALAR, 100_000))
                    .get(0);
            Tensor x = longs("x", Shape.of(1000), new long[1000]);
            x.buffer().putLong(0, 42);
            same = through.run(List.of(x), List.of("OUTPUT__0")).get(0);
            x.buffer().putLong(0, 7);
            x.close();
        }
        assertThat(same.buffer().getLong(0)).isEqualTo(42);
        assertThat(result.shape()).isEqualTo(Shape.of(100_000));
        assertThat(result.buffer().getLong(8 * 99_999)).isEqualTo(99_999);
        result.close();
        same.close();
    }

    @Test
    void whatTheModelRefusesIsTheClientsFaultInOneLine() {
        try (BackendModel model = load("net");
                ModelInstance run = model.newInstance()) {
            assertThatThrownBy(() -> ask(run, "OUTPUT__0", floats("x", Shape.of(1, 3), 1, 2, 3)))
                    .isInstanceOfSatisfying(ServingException.class, e -> {
                        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                        assertThat(e.getMessage())
                                .contains("'net'")
                                .contains("mat1 and mat2 shapes cannot be multiplied (1x3 and 4x3)")
                                .doesNotContain("\n", "Traceback");
                    });
            assertThat(ask(run, "OUTPUT__0", floats("x", Shape.of(1, 4), 1, 2, 3, 4))
                            .values())
                    .hasSize(2);
        }
    }

    @Test
    void anAnswerOfAnotherTypeThanPromisedIsTheOperatorsFault() {
        ModelConfig config =
                config("scores", List.of(spec("logits", DataType.FP32)), List.of(spec("label", DataType.INT32)));
        try (BackendModel model = load("scores", config);
                ModelInstance run = model.newInstance()) {
            assertThatThrownBy(() -> ask(run, "label", floats("logits", 1, 2)))
                    .isInstanceOfSatisfying(ServingException.class, e -> {
                        assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
                        assertThat(e.describe()).contains("INT64").contains("TYPE_INT64");
                    });
        }
    }

    @Test
    void optimizedExecutionCanBeSwitchedOff() {
        ModelConfig config = ModelConfig.builder("half_plus_two")
                .parameters(Map.of("DISABLE_OPTIMIZED_EXECUTION", "true"))
                .maxBatchSize(8)
                .build();
        try (BackendModel model = load("half_plus_two", config);
                ModelInstance run = model.newInstance()) {
            assertThat(model.config().maxBatchSize()).isEqualTo(8);
            for (int i = 0; i < 5; i++) {
                assertThat(ask(run, "OUTPUT__0", floats("x", Shape.of(1, 1), i)).values())
                        .containsExactly(i / 2f + 2);
            }
        }
    }

    /** Archives that this version of libtorch writes have a slightly different layout. */
    @Test
    void whatTheEngineHasWrittenIsRead() throws Exception {
        byte[] written = Rewritten.byTheEngine(Models.root().resolve("net/1/model.pt"));
        var source = Models.lay("rewritten", directory, "model.pt", written);
        try (BackendModel model = Models.BACKEND.load(
                        source, ModelConfig.unspecified("rewritten"), new BackendContext(2, directory, Map.of()));
                ModelInstance run = model.newInstance()) {
            assertThat(ask(run, "OUTPUT__0", floats("x", Shape.of(1, 4), 1, 2, 3, 4))
                            .values())
                    .containsExactly(17.5f, 54.5f);
        }
    }

    @Test
    void fiftyLoadsLeaveNoMemoryBehind() throws Exception {
        long least = Long.MAX_VALUE;
        // The heap grows, too, but not in every round; a leak grows in each.
        for (int round = 0; round < 4 && least >= 48L << 20; round++) {
            long before = resident();
            for (int i = 0; i < 50; i++) {
                loadAndRun();
            }
            least = Math.min(least, resident() - before);
        }
        assertThat(least).isLessThan(48L << 20);
    }

    private static void loadAndRun() {
        try (BackendModel model = load("weights");
                ModelInstance run = model.newInstance()) {
            for (int i = 0; i < 3; i++) {
                assertThat(ask(run, "OUTPUT__0", floats("x", Shape.of(512, 8), new float[4096]))
                                .values())
                        .hasSize(4096);
            }
        }
    }

    /** The resident memory of this process in bytes. */
    private static long resident() throws Exception {
        for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
            if (line.startsWith("VmRSS:")) {
                return Long.parseLong(line.replaceAll("\\D", "")) << 10;
            }
        }
        throw new AssertionError("no VmRSS");
    }
}
