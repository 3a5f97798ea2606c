// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.request;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelRef;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

class TabularInputsTest {
    private static TabularInputs matrix(DataType type, String names) {
        return new TabularInputs(
                List.of(new TensorSpec("input-0", type, Shape.of(-1, 2))),
                ModelConfig.builder("m")
                        .parameters(Map.of("feature_names", names))
                        .build());
    }

    private static InferenceRequest request(Tensor... inputs) {
        return new InferenceRequest(ModelRef.latest("m"), "", List.of(inputs), List.of(), Map.of(), 0, 0);
    }

    private static Tensor floats(String name, Shape shape, float... values) {
        Tensor t = Tensor.allocate(name, DataType.FP32, shape);
        ByteBuffer to = t.buffer();
        for (float v : values) {
            to.putFloat(v);
        }
        return t;
    }

    private static double[] doubles(Tensor t) {
        double[] values = new double[(int) t.shape().elementCount()];
        t.buffer().asDoubleBuffer().get(values);
        return values;
    }

    @Test
    void whatIsAsTheModelHasItPassesAsItIs() {
        InferenceRequest asIs = request(floats("input-0", Shape.of(1, 2), 1, 2));
        assertThat(matrix(DataType.FP32, "a,b").toModel(asIs)).isSameAs(asIs);
        asIs.release();
    }

    @Test
    void theOnlyInputHasAnyNameAndItsNumbersAreWidened() {
        Tensor given = floats("x", Shape.of(1, 2), 0.1f, Float.NaN);
        InferenceRequest fed = matrix(DataType.FP64, "").toModel(request(given));
        assertThat(fed.inputs()).singleElement().satisfies(t -> {
            assertThat(t.name()).isEqualTo("input-0");
            assertThat(t.dataType()).isEqualTo(DataType.FP64);
            assertThat(doubles(t)).containsExactly(0.1f, Double.NaN);
        });
        fed.release();
    }

    @Test
    void everyTypeOfNumbersIsRead() {
        for (DataType type : DataType.values()) {
            if (type == DataType.BYTES) {
                continue;
            }
            Tensor given = Tensor.allocate("input-0", type, Shape.of(1, 2));
            ByteBuffer to = given.buffer();
            for (int i = 0; i < 2; i++) {
                switch (type) {
                    case FP64 -> to.putDouble(1);
                    case FP32 -> to.putFloat(1);
                    case FP16 -> to.putShort((short) 0x3c00);
                    case BF16 -> to.putShort((short) 0x3f80);
                    default -> {
                        to.put((byte) 1);
                        to.position(to.position() + type.size() - 1);
                        for (int j = 1; j < type.size(); j++) {
                            to.put(i * type.size() + j, (byte) 0);
                        }
                    }
                }
            }
            InferenceRequest fed = matrix(DataType.FP64, "").toModel(request(given));
            assertThat(doubles(fed.inputs().get(0))).as(type.name()).containsExactly(1, 1);
            fed.release();
        }
    }

    @Test
    void theEndsOfUnsignedAndHalfNumbersAreRight() {
        Tensor longs = Tensor.allocate("input-0", DataType.UINT64, Shape.of(1, 2));
        longs.buffer().putLong(-1).putLong(Long.MIN_VALUE);
        InferenceRequest fed = matrix(DataType.FP64, "").toModel(request(longs));
        assertThat(doubles(fed.inputs().get(0))).containsExactly(0x1p64, 0x1p63);
        fed.release();
        Tensor halves = Tensor.allocate("input-0", DataType.FP16, Shape.of(2, 2));
        halves.buffer()
                .putShort((short) 0xfc00)
                .putShort((short) 1)
                .putShort((short) 0x7bff)
                .putShort((short) 0x7e00);
        fed = matrix(DataType.FP64, "").toModel(request(halves));
        assertThat(doubles(fed.inputs().get(0))).containsExactly(Double.NEGATIVE_INFINITY, 0x1p-24, 65504, Double.NaN);
        fed.release();
    }

    @Test
    void namedColumnsBecomeAMatrixInTheModelsOrder() {
        InferenceRequest fed = matrix(DataType.FP64, "a,b")
                .toModel(request(floats("b", Shape.of(3), 4, 5, 6), floats("a", Shape.of(3, 1), 1, 2, 3)));
        Tensor made = fed.inputs().get(0);
        assertThat(made.shape()).isEqualTo(Shape.of(3, 2));
        assertThat(doubles(made)).containsExactly(1, 4, 2, 5, 3, 6);
        fed.release();
    }

    @Test
    void columnsThatTheModelDoesNotHaveAreLeftForTheChecks() {
        for (Tensor[] given : List.of(
                new Tensor[] {floats("b", Shape.of(1), 4), floats("c", Shape.of(1), 1)},
                new Tensor[] {floats("b", Shape.of(1), 4), floats("b", Shape.of(1), 1)},
                new Tensor[] {floats("a", Shape.of(1), 4), floats("b", Shape.of(2), 1, 2)})) {
            InferenceRequest asked = request(given);
            assertThat(matrix(DataType.FP32, "a,b").toModel(asked)).isSameAs(asked);
            asked.release();
        }
    }

    @Test
    void columnsHaveADimensionOfOneOrNot() {
        ModelConfig config = ModelConfig.builder("m").build();
        TabularInputs flat = new TabularInputs(
                List.of(
                        new TensorSpec("a", DataType.FP64, Shape.of(-1)),
                        new TensorSpec("b", DataType.FP32, Shape.of(-1))),
                config);
        InferenceRequest fed =
                flat.toModel(request(floats("a", Shape.of(2, 1), 1, 2), floats("b", Shape.of(2, 1), 3, 4)));
        assertThat(fed.inputs()).extracting(Tensor::shape).containsExactly(Shape.of(2), Shape.of(2));
        fed.release();
        TabularInputs upright = new TabularInputs(
                List.of(
                        new TensorSpec("a", DataType.FP32, Shape.of(-1, 1)),
                        new TensorSpec("b", DataType.FP32, Shape.of(-1, 1))),
                config);
        fed = upright.toModel(request(floats("b", Shape.of(2), 3, 4), floats("a", Shape.of(2), 1, 2)));
        assertThat(fed.inputs()).extracting(Tensor::name).containsExactly("b", "a");
        assertThat(fed.inputs()).extracting(Tensor::shape).containsExactly(Shape.of(2, 1), Shape.of(2, 1));
        fed.release();
    }

    @Test
    void textIsNoNumber() {
        Tensor text = Tensor.allocate("x", DataType.BOOL, Shape.of(1, 2));
        InferenceRequest fed = new TabularInputs(
                        List.of(new TensorSpec("t", DataType.BYTES, Shape.of(-1, 2))),
                        ModelConfig.builder("m").build())
                .toModel(request(text));
        assertThat(fed.inputs().get(0).dataType()).isEqualTo(DataType.BOOL);
        fed.release();
    }
}
