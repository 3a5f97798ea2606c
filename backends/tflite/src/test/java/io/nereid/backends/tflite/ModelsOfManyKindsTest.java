// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import static io.nereid.backends.tflite.Models.ask;
import static io.nereid.backends.tflite.Models.floats;
import static io.nereid.backends.tflite.Models.load;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
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
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

@Engine
class ModelsOfManyKindsTest {
    private static Tensor ints(String name, Shape shape, int... values) {
        Tensor tensor = Tensor.allocate(name, DataType.INT32, shape);
        tensor.buffer().asIntBuffer().put(values);
        return tensor;
    }

    private static List<Tensor> answers(ModelInstance run, List<String> outputs, Tensor... inputs) {
        try {
            return run.run(List.of(inputs), outputs);
        } finally {
            Tensor.closeAll(List.of(inputs));
        }
    }

    @Test
    void halfPlusTwoHasTheNamesOfItsSignatureAndTakesBatches() {
        try (BackendModel model = load("half_plus_two");
                ModelInstance run = model.newInstance()) {
            assertThat(model.config().inputs()).containsExactly(new TensorSpec("x", DataType.FP32, Shape.SCALAR));
            assertThat(model.config().outputs()).extracting(TensorSpec::name).containsExactly("y");
            assertThat(model.config().maxBatchSize()).isEqualTo(4);
            assertThat(ask(run, "y", floats("x", 1, 2, 5)).values()).containsExactly(2.5f, 3f, 4.5f);
            assertThat(ask(run, "y", floats("x", 8)).values()).containsExactly(6f);
            assertThat(ask(run, "y", floats("x", 1, 2, 5, 6)).values()).containsExactly(2.5f, 3f, 4.5f, 5f);
        }
    }

    @Test
    void aModelOfOneRowRunsRowByRowWhereBatchesAreConfigured() {
        try (BackendModel model = load("fixed");
                ModelInstance run = model.newInstance()) {
            assertThat(model.config().maxBatchSize()).isZero();
            assertThat(model.config().inputs()).containsExactly(new TensorSpec("x", DataType.FP32, Shape.of(1, 4)));
            assertThat(ask(run, "square", floats("x", Shape.of(1, 4), 1, 2, 3, 4))
                            .values())
                    .containsExactly(3f, 5f, 7f, 9f);
        }
        ModelConfig batched = ModelConfig.builder("fixed").maxBatchSize(8).build();
        try (BackendModel model = load("fixed", batched);
                ModelInstance run = model.newInstance()) {
            assertThat(model.config().inputs()).containsExactly(new TensorSpec("x", DataType.FP32, Shape.of(4)));
            Models.Answer one = ask(run, "sum", floats("x", Shape.of(1, 4), 1, 2, 3, 4));
            assertThat(one.values()).containsExactly(10f);
            List<Tensor> all = answers(
                    run, List.of("sum", "square"), floats("x", Shape.of(3, 4), 1, 2, 3, 4, 0, 0, 0, 0, -1, -1, -1, 5));
            assertThat(all.get(0).shape()).isEqualTo(Shape.of(3, 1));
            assertThat(Models.floats(all.get(0))).containsExactly(10f, 0f, 2f);
            assertThat(all.get(1).shape()).isEqualTo(Shape.of(3, 2, 2));
            assertThat(Models.floats(all.get(1))).containsExactly(3f, 5f, 7f, 9f, 1f, 1f, 1f, 1f, -1f, -1f, -1f, 11f);
            Tensor.closeAll(all);
        }
    }

    @Test
    void withoutACheckOfShapesInputsAreResized() {
        try (BackendModel model = load("add_sub", ModelConfig.unspecified("add_sub"), Map.of("check-shapes", "false"));
                ModelInstance run = model.newInstance()) {
            assertThat(model.config().inputs()).hasSize(2).allMatch(TensorSpec::unchecked);
            assertThat(model.config().inputs()).extracting(TensorSpec::shape).containsOnly(Shape.of(1, 4));
            List<Tensor> all = answers(
                    run,
                    model.config().outputs().stream().map(TensorSpec::name).toList(),
                    floats(model.config().inputs().get(0).name(), Shape.of(3, 4), new float[12]),
                    floats(model.config().inputs().get(1).name(), Shape.of(3, 4), new float[12]));
            assertThat(all).extracting(Tensor::shape).containsOnly(Shape.of(3, 4));
            Tensor.closeAll(all);
        }
    }

    @Test
    void everySignatureAnswers() {
        try (BackendModel model = load("several")) {
            assertThat(model.signatures()).containsOnlyKeys("serving_default", "embed");
            assertThat(model.config().outputs())
                    .extracting(TensorSpec::name)
                    .containsExactlyInAnyOrder("scores", "label");
            try (ModelInstance run = model.newInstance()) {
                List<Tensor> all = answers(
                        run, List.of("label", "scores"), floats("rows", Shape.of(2, 4), 1, 0, 0, 0, 0, 0, 0, -4));
                assertThat(all.get(0).buffer().getLong(0)).isEqualTo(2);
                assertThat(all.get(0).buffer().getLong(8)).isEqualTo(0);
                assertThat(Models.floats(all.get(1))).containsExactly(0f, 0.25f, 0.5f, -9f, -10f, -11f);
                Tensor.closeAll(all);
            }
            try (ModelInstance run = model.newInstance("embed")) {
                assertThat(ask(run, "embedding", floats("rows", Shape.of(1, 4), -1, 2, -3, 4))
                                .values())
                        .containsExactly(0f, 2f, 0f, 4f);
            }
            assertThatThrownBy(() -> model.newInstance("other")).hasMessageContaining("\"other\" not found");
        }
    }

    @Test
    void aModelOfFixedShapeIsServedAsItIs() {
        try (BackendModel model = load("add_sub");
                ModelInstance run = model.newInstance()) {
            assertThat(model.config().maxBatchSize()).isZero();
            assertThat(model.config().inputs()).extracting(TensorSpec::shape).containsOnly(Shape.of(1, 4));
            List<String> inputs =
                    model.config().inputs().stream().map(TensorSpec::name).toList();
            List<String> outputs =
                    model.config().outputs().stream().map(TensorSpec::name).toList();
            List<Tensor> all = answers(
                    run,
                    outputs,
                    floats(inputs.get(0), Shape.of(1, 4), 1, 2, 3, 4),
                    floats(inputs.get(1), Shape.of(1, 4), 4, 3, 2, 1));
            assertThat(List.of(Models.floats(all.get(0)), Models.floats(all.get(1))))
                    .contains(new float[] {5, 5, 5, 5}, new float[] {-3, -1, 1, 3});
            Tensor.closeAll(all);
        }
    }

    @Test
    void aModelThatCannotBeBatchedIsRefusedABatchSize() {
        ModelConfig loop = ModelConfig.builder("loop").maxBatchSize(8).build();
        assertThatThrownBy(() -> load("loop", loop)).hasMessageContaining("does not support batching");
    }

    @Test
    void typesComeAsTheyAre() {
        try (BackendModel model = load(
                        "typed", ModelConfig.builder("typed").maxBatchSize(0).build());
                ModelInstance run = model.newInstance()) {
            List<Tensor> all =
                    answers(run, List.of("doubled", "long", "positive"), ints("x", Shape.of(2, 2), 1, -2, 0, 4));
            assertThat(all).extracting(Tensor::dataType).containsExactly(DataType.INT32, DataType.INT64, DataType.BOOL);
            assertThat(all.get(0).buffer().getInt(4)).isEqualTo(-4);
            assertThat(all.get(1).buffer().getLong(8)).isEqualTo(-2);
            assertThat(all.get(2).buffer().get(3)).isEqualTo((byte) 1);
            Tensor.closeAll(all);
        }
    }

    private static Tensor bytes(TensorSpec input, int value) {
        byte[] all = {(byte) value, (byte) value, (byte) value, (byte) value};
        return Tensor.over(input.name(), input.dataType(), Shape.of(1, 4), MemoryRegion.copyOf(all, 0, 4), 0, 4);
    }

    @ParameterizedTest
    @ValueSource(strings = {"int8", "uint8"})
    void modelsOfEightBitsTakeAndGiveThem(String type) {
        try (BackendModel model = load("quantized_" + type);
                ModelInstance run = model.newInstance()) {
            TensorSpec input = model.config().inputs().get(0);
            assertThat(input.dataType().name()).isEqualToIgnoringCase(type);
            boolean signed = type.equals("int8");
            Tensor low = bytes(input, signed ? -128 : 0);
            Tensor high = bytes(input, signed ? 127 : 255);
            String output = model.config().outputs().get(0).name();
            List<Tensor> all = answers(run, List.of(output), low);
            List<Tensor> more = answers(run, List.of(output), high);
            int small =
                    signed ? all.get(0).buffer().get(0) : all.get(0).buffer().get(0) & 0xff;
            int large =
                    signed ? more.get(0).buffer().get(0) : more.get(0).buffer().get(0) & 0xff;
            assertThat(all.get(0).shape()).isEqualTo(Shape.of(1, 2));
            // All weights are positive.
            assertThat(large).isGreaterThan(small);
            Tensor.closeAll(all);
            Tensor.closeAll(more);
        }
    }

    @Test
    void textsGoThroughUnharmed() {
        try (BackendModel model = load(
                        "texts", ModelConfig.builder("texts").maxBatchSize(0).build());
                ModelInstance run = model.newInstance()) {
            byte[] odd = {(byte) 0xff, 0, 1};
            List<Tensor> all = answers(
                    run,
                    List.of("chosen"),
                    Models.texts("texts", Models.utf8("é😀"), odd, Models.utf8("")),
                    ints("which", Shape.of(4), 1, 2, 0, 1));
            assertThat(Models.texts(all.get(0))).containsExactly(odd, Models.utf8(""), Models.utf8("é😀"), odd);
            Tensor.closeAll(all);
        }
    }

    @Test
    void whatTheModelRefusesIsTheClientsFaultAndHarmsNoLaterRun() {
        try (BackendModel model = load("several");
                ModelInstance run = model.newInstance()) {
            assertThatThrownBy(() -> ask(run, "scores", floats("rows", Shape.of(1, 3), 1, 2, 3)))
                    .isInstanceOfSatisfying(ServingException.class, e -> {
                        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                        assertThat(e.getMessage())
                                .contains("'several' rejected the input: ")
                                .doesNotContain("\n");
                        assertThat(e.getMessage()).doesNotContain("reports no reason");
                    });
            assertThat(ask(run, "scores", floats("rows", Shape.of(1, 4), 1, 0, 0, 0))
                            .values())
                    .containsExactly(0f, 0.25f, 0.5f);
        }
        try (BackendModel model = load(
                        "texts", ModelConfig.builder("texts").maxBatchSize(0).build());
                ModelInstance run = model.newInstance()) {
            assertThatThrownBy(() -> answers(
                            run,
                            List.of("chosen"),
                            Models.texts("texts", Models.utf8("a")),
                            ints("which", Shape.of(1), 7)))
                    .isInstanceOfSatisfying(
                            ServingException.class,
                            e -> assertThat(e.getMessage()).contains("index out of bounds"));
        }
    }

    @Test
    void aRunUnderWayCanBeStopped() throws Exception {
        var pool = Threads.pool("stopped", 1);
        try (BackendModel model = load("loop");
                ModelInstance run = model.newInstance()) {
            Future<?> long1 = pool.submit(() -> ask(run, "sum", ints("times", Shape.SCALAR, 400_000)));
            // A cancellation before the run begins does nothing, so it is repeated until the run has ended.
            while (!long1.isDone()) {
                run.cancel();
                Thread.onSpinWait();
            }
            assertThatThrownBy(() -> long1.get(60, TimeUnit.SECONDS))
                    .isInstanceOf(ExecutionException.class)
                    .cause()
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.CANCELLED));
            assertThat(ask(run, "sum", ints("times", Shape.SCALAR, 0)).values()).containsExactly(0f);
        } finally {
            pool.shutdown();
        }
    }

    @Test
    void threadsAreTakenFromTheConfiguration() {
        ModelConfig config = ModelConfig.builder("several")
                .parameters(Map.of("num_threads", "2"))
                .build();
        try (BackendModel model = load("several", config);
                ModelInstance run = model.newInstance()) {
            assertThat(model.config().instances()).isEqualTo(1);
            assertThat(ask(run, "scores", floats("rows", Shape.of(1, 4), 1, 0, 0, 0))
                            .values())
                    .hasSize(3);
        }
    }

    @Test
    void fiftyLoadsLeaveNoMemoryBehind() throws Exception {
        long least = Long.MAX_VALUE;
        // The heap grows, too, but not in every round; a leak grows in each.
        for (int round = 0; round < 4 && least >= 32L << 20; round++) {
            long before = resident();
            for (int i = 0; i < 50; i++) {
                loadAndRun();
            }
            least = Math.min(least, resident() - before);
        }
        assertThat(least).isLessThan(32L << 20);
    }

    private static void loadAndRun() {
        try (BackendModel model = load("several");
                ModelInstance run = model.newInstance()) {
            for (int rows = 64; rows <= 4096; rows *= 4) {
                assertThat(ask(run, "scores", floats("rows", Shape.of(rows, 4), new float[4 * rows]))
                                .values())
                        .hasSize(3 * rows);
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
