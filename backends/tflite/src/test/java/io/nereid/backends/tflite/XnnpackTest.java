// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import static io.nereid.backends.tflite.Models.ask;
import static io.nereid.backends.tflite.Models.floats;
import static io.nereid.backends.tflite.Models.load;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.within;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.base.Threads;
import io.nereid.spi.config.ModelConfig;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** XNNPACK: which operators it runs, that answers and errors are those of the built-in kernels, and its costs. */
@Engine
class XnnpackTest {
    private static final Map<String, String> OFF = Map.of("xnnpack", "off");
    private static final int PIXELS = 16 * 16 * 3;

    private static float[] pixels(int rows, int seed) {
        Random random = new Random(seed);
        float[] pixels = new float[rows * PIXELS];
        for (int i = 0; i < pixels.length; i++) {
            pixels[i] = random.nextFloat() * 2 - 1;
        }
        return pixels;
    }

    private static float[] scores(ModelInstance run, int rows, int seed) {
        Models.Answer answer = ask(run, "scores", floats("image", Shape.of(rows, 16, 16, 3), pixels(rows, seed)));
        assertThat(answer.shape()).isEqualTo(Shape.of(rows, 5));
        return answer.values();
    }

    private static int delegated(String model, String key, boolean xnnpack) {
        TfliteBackend backend = new TfliteBackend();
        assertThat(backend.unavailableReason()).isNull();
        LiteRuntime runtime = LiteRuntime.start();
        try (LiteModelFile file = LiteModelFile.open(
                        runtime, model, Path.of(model), Models.bytes("models/" + model + "/1/model.tflite"));
                LiteInterpreter interpreter = LiteInterpreter.open(runtime, file, 1, key, xnnpack)) {
            assertThat(interpreter).isNotNull();
            assertThat(interpreter.allocate()).isTrue();
            return interpreter.delegated();
        }
    }

    @Test
    void operatorsOfAConvolutionalModelRunInXnnpackExceptThoseThatItDoesNotHave() {
        // Two convolutions, an addition, a mean, a product and a softmax; ArgMax remains.
        assertThat(delegated("cnn", "serving_default", true)).isEqualTo(6);
        assertThat(delegated("cnn", "serving_default", false)).isZero();
        // A model without signatures gets its delegate with the first allocation.
        assertThat(delegated("add_sub", "", true)).isEqualTo(2);
        // Nothing in it is for XNNPACK.
        assertThat(delegated("texts", "serving_default", true)).isZero();
    }

    @Test
    void answersAreThoseOfTheBuiltInKernelsForEveryBatchSizeInAnyOrder() {
        ModelConfig batched = ModelConfig.builder("cnn").maxBatchSize(8).build();
        try (BackendModel fast = load("cnn", batched);
                BackendModel plain = load("cnn", batched, OFF);
                ModelInstance with = fast.newInstance();
                ModelInstance without = plain.newInstance()) {
            for (int rows : new int[] {1, 4, 2, 8, 8, 3, 1, 7, 1}) {
                float[] expected = scores(without, rows, rows);
                float[] actual = scores(with, rows, rows);
                for (int i = 0; i < expected.length; i++) {
                    assertThat(actual[i]).isCloseTo(expected[i], within(1e-4f * Math.abs(expected[i])));
                }
            }
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {"int8", "uint8"})
    void quantizedAnswersDifferByOneStepAtMost(String type) {
        String name = "quantized_" + type;
        try (BackendModel fast = load(name);
                BackendModel plain = load(name, ModelConfig.unspecified(name), OFF);
                ModelInstance with = fast.newInstance();
                ModelInstance without = plain.newInstance()) {
            for (int seed = 0; seed < 50; seed++) {
                byte[] values = new byte[4];
                new Random(seed).nextBytes(values);
                byte[] expected = bytes(without, plain, values);
                byte[] actual = bytes(with, fast, values);
                assertThat(actual).hasSameSizeAs(expected);
                for (int i = 0; i < expected.length; i++) {
                    boolean signed = type.equals("int8");
                    int one = signed ? actual[i] : actual[i] & 0xff;
                    int other = signed ? expected[i] : expected[i] & 0xff;
                    assertThat(one).isCloseTo(other, within(1));
                }
            }
        }
    }

    private static byte[] bytes(ModelInstance run, BackendModel model, byte[] values) {
        DataType type = model.config().inputs().get(0).dataType();
        Tensor input = Tensor.allocate(model.config().inputs().get(0).name(), type, Shape.of(1, 4));
        input.buffer().put(values);
        List<Tensor> outputs;
        try {
            outputs = run.run(
                    List.of(input), List.of(model.config().outputs().get(0).name()));
        } finally {
            input.close();
        }
        byte[] all = new byte[outputs.get(0).byteLength()];
        outputs.get(0).buffer().get(all);
        Tensor.closeAll(outputs);
        return all;
    }

    @Test
    void theModelsParameterGoesBeforeTheSetting() {
        ModelConfig on =
                ModelConfig.builder("cnn").parameters(Map.of("xnnpack", "on")).build();
        ModelConfig off = ModelConfig.builder("cnn").parameters(OFF).build();
        try (BackendModel fast = load("cnn", on, OFF);
                BackendModel plain = load("cnn", off)) {
            assertThat(fast.memoryBytes()).isGreaterThan(plain.memoryBytes());
        }
    }

    @Test
    void theCopyOfTheWeightsOfEachInstanceCountsAsMemory() {
        long size = Models.bytes("models/cnn/1/model.tflite").length;
        ModelConfig two = ModelConfig.builder("cnn").instances(2).build();
        try (BackendModel model = load("cnn", two);
                BackendModel plain = load("cnn", two, OFF)) {
            assertThat(model.memoryBytes()).isEqualTo(3 * size);
            assertThat(plain.memoryBytes()).isEqualTo(size);
            try (ModelInstance first = model.newInstance();
                    ModelInstance second = model.newInstance();
                    ModelInstance third = model.newInstance()) {
                assertThat(List.of(first, second, third)).hasSize(3);
                assertThat(model.memoryBytes()).isEqualTo(4 * size);
            }
            assertThat(model.memoryBytes()).isEqualTo(3 * size);
        }
    }

    @Test
    void whatIsRefusedHasTheMessageOfTheBuiltInKernelsAndHarmsNoLaterRun() {
        String[] messages = new String[2];
        for (int i = 0; i < 2; i++) {
            try (BackendModel model = load("several", ModelConfig.unspecified("several"), i == 0 ? Map.of() : OFF);
                    ModelInstance run = model.newInstance()) {
                for (int again = 0; again < 3; again++) {
                    int at = i;
                    assertThatThrownBy(() -> ask(run, "scores", floats("rows", Shape.of(1, 3), 1, 2, 3)))
                            .isInstanceOfSatisfying(ServingException.class, e -> {
                                assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
                                messages[at] = e.getMessage();
                            });
                    assertThat(ask(run, "scores", floats("rows", Shape.of(1, 4), 1, 0, 0, 0))
                                    .values())
                            .containsExactly(0f, 0.25f, 0.5f);
                }
            }
        }
        assertThat(messages[0]).isEqualTo(messages[1]).contains("rejected the input: ");
    }

    @Test
    void aStoppedRunHarmsNoLaterRun() throws Exception {
        var pool = Threads.pool("stopped", 1);
        ModelConfig batched = ModelConfig.builder("cnn").maxBatchSize(0).build();
        try (BackendModel model = load("cnn", batched);
                ModelInstance run = model.newInstance()) {
            float[] expected = scores(run, 2, 9);
            for (int i = 0; i < 50; i++) {
                Future<float[]> one = pool.submit(() -> scores(run, 2, 9));
                while (!one.isDone()) {
                    run.cancel();
                    Thread.onSpinWait();
                }
                try {
                    assertThat(one.get(60, TimeUnit.SECONDS)).isEqualTo(expected);
                } catch (ExecutionException e) {
                    assertThat(e.getCause())
                            .isInstanceOfSatisfying(
                                    ServingException.class,
                                    s -> assertThat(s.code()).isEqualTo(ErrorCode.CANCELLED));
                }
            }
            assertThat(scores(run, 2, 9)).isEqualTo(expected);
        } finally {
            pool.shutdown();
        }
    }

    /** Loads a copy of a model with one other byte. */
    private static BackendModel damaged(Path directory, String model, int at, int value) {
        byte[] bytes = Models.bytes("models/" + model + "/1/model.tflite");
        bytes[at] = (byte) value;
        return Models.BACKEND.load(
                Models.lay(model, directory, "model.tflite", bytes),
                ModelConfig.unspecified(model),
                new BackendContext(2, directory, Map.of()));
    }

    @Test
    void whatWouldEndTheProcessInXnnpackRunsOnTheBuiltInKernels(@TempDir Path directory) {
        // A zero point of -158 for eight bits.
        try (BackendModel model = damaged(directory, "quantized_uint8", 1112, 98);
                ModelInstance run = model.newInstance()) {
            long size = Models.bytes("models/quantized_uint8/1/model.tflite").length;
            assertThat(model.memoryBytes()).isEqualTo(size);
            assertThat(bytes(run, model, new byte[4])).hasSize(2);
        }
        // A shape of gigabytes, which the operator corrects.
        try (BackendModel model = damaged(directory, "cnn", 2943, 52);
                ModelInstance run = model.newInstance()) {
            long size = Models.bytes("models/cnn/1/model.tflite").length;
            assertThat(model.memoryBytes()).isEqualTo(size);
            assertThat(scores(run, 1, 1)).hasSize(5);
        }
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "add_sub",
                "cnn",
                "fixed",
                "half_plus_two",
                "loop",
                "quantized_int8",
                "quantized_uint8",
                "several",
                "texts",
                "typed"
            })
    void nothingKeepsModelsOfConvertersFromXnnpack(String model) {
        assertThat(XnnpackCheck.obstacle(Models.bytes("models/" + model + "/1/model.tflite")))
                .isNull();
    }

    @Test
    void twelveBackendsOfOneProcessShareTheCallbacksOfTheLibrary() {
        for (int i = 0; i < 12; i++) {
            TfliteBackend backend = new TfliteBackend();
            assertThat(backend.unavailableReason()).isNull();
        }
        try (BackendModel model = load("several");
                ModelInstance run = model.newInstance()) {
            assertThatThrownBy(() -> ask(run, "scores", floats("rows", Shape.of(1, 3), 1, 2, 3)))
                    .hasMessageContaining("rejected the input: ")
                    .hasMessageNotContaining("reports no reason");
        }
    }
}
