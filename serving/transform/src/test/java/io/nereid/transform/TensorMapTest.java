// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;

class TensorMapTest {
    /** Checks values in a payload, and again after a conversion to a tensor. */
    private static void passed(TensorMap payload, Consumer<TensorMap> check) {
        List<Tensor> tensors = payload.tensors();
        TensorValues.Scope scope = new TensorValues.Scope();
        try {
            check.accept(TensorMap.of(tensors, payload.parameters(), scope));
        } finally {
            scope.end();
            Tensor.closeAll(tensors);
        }
    }

    @Test
    void arraysOfEveryTypeRoundTrip() {
        TensorMap sent = TensorMap.of("f", new float[] {1.5f, -2})
                .with("d", new double[] {1e300})
                .with("l", new long[] {Long.MIN_VALUE, 7})
                .with("i", new int[] {Integer.MAX_VALUE})
                .with("s", new short[] {-3})
                .with("b", new byte[] {-4})
                .with("z", new boolean[] {true, false})
                .with("t", new String[] {"ä", "", "b"});
        for (TensorMap read : List.of(sent)) {
            same(read);
        }
        passed(sent, TensorMapTest::same);
    }

    private static void same(TensorMap p) {
        assertThat(p.names()).containsExactly("f", "d", "l", "i", "s", "b", "z", "t");
        assertThat(p.names().stream().map(p::type))
                .containsExactly(
                        DataType.FP32,
                        DataType.FP64,
                        DataType.INT64,
                        DataType.INT32,
                        DataType.INT16,
                        DataType.INT8,
                        DataType.BOOL,
                        DataType.BYTES);
        assertThat(p.floats("f")).containsExactly(1.5f, -2);
        assertThat(p.doubles("f")).containsExactly(1.5, -2);
        assertThat(p.doubles("d")).containsExactly(1e300);
        assertThat(p.longs("l")).containsExactly(Long.MIN_VALUE, 7);
        assertThat(p.ints("i")).containsExactly(Integer.MAX_VALUE);
        assertThat(p.floats("s")).containsExactly(-3);
        assertThat(p.longs("b")).containsExactly(-4);
        assertThat(p.booleans("z")).containsExactly(true, false);
        assertThat(p.texts("t")).containsExactly("ä", "", "b");
        assertThat(p.bytes("t")[0]).containsExactly(0xc3, 0xa4);
    }

    @Test
    void arraysOfRowsBecomeShapes() {
        passed(TensorMap.of("x", new float[][] {{1, 2, 3}, {4, 5, 6}}).with("y", new long[2][0][3]), p -> {
            assertThat(p.shape("x")).isEqualTo(Shape.of(2, 3));
            assertThat(p.floats("x")).containsExactly(1, 2, 3, 4, 5, 6);
            assertThat(p.floatRows("x")).isDeepEqualTo(new float[][] {{1, 2, 3}, {4, 5, 6}});
            assertThat(p.shape("y").dim(0)).isEqualTo(2);
            assertThat(p.longs("y")).isEmpty();
        });
    }

    @Test
    void aSingleValueBecomesATensorOfShapeOne() {
        passed(TensorMap.of("x", 2.5).with("t", "word").with("z", true), p -> {
            assertThat(p.shape("x")).isEqualTo(Shape.of(1));
            assertThat(p.doubles("x")).containsExactly(2.5);
            assertThat(p.texts("t")).containsExactly("word");
            assertThat(p.booleans("z")).containsExactly(true);
        });
    }

    @Test
    void typesWithoutAJavaEquivalentAreGivenAsBits() {
        TensorMap sent = TensorMap.empty()
                .with("h", DataType.FP16, Shape.of(4), new short[] {0x3c00, (short) 0xc000, 0x0001, 0x7c00})
                .with("g", DataType.BF16, Shape.of(1), new short[] {0x3fc0})
                .with("u", DataType.UINT8, Shape.of(1, 2), new byte[] {(byte) 200, 1})
                .with("v", DataType.UINT64, Shape.of(1), new long[] {-1})
                .with("w", DataType.UINT32, Shape.of(1), new int[] {-1})
                .with("x", DataType.UINT16, Shape.of(1), new short[] {-1})
                .with("r", DataType.BYTES, Shape.of(1), new byte[][] {{(byte) 0xff}});
        passed(sent, p -> {
            assertThat(p.floats("h")).containsExactly(1, -2, 0x1p-24f, Float.POSITIVE_INFINITY);
            assertThat(p.floats("g")).containsExactly(1.5f);
            assertThat(p.ints("u")).containsExactly(200, 1);
            assertThat(p.doubles("v")).containsExactly(0x1p64);
            assertThat(p.longs("w")).containsExactly(0xffff_ffffL);
            assertThat(p.ints("x")).containsExactly(0xffff);
            assertThat(p.bytes("r")[0]).containsExactly(0xff);
        });
    }

    @Test
    void rejectsValuesThatDoNotMatch() {
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorMap.of("x", new float[][] {{1}, {1, 2}}))
                .withMessageContaining("rows of different lengths");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorMap.of("x", new float[][] {{}, {1, 2}}))
                .withMessageContaining("rows of different lengths");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorMap.of("x", List.of(1)))
                .withMessageContaining("is not a tensor; expected an array");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorMap.of("x", new Integer[] {1}))
                .withMessageContaining("is not a tensor");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorMap.empty().with("x", DataType.FP32, Shape.of(2), new float[3]))
                .withMessageContaining("a float[] of 3 does not fit FP32[2]");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorMap.empty().with("x", DataType.FP32, Shape.of(2), new double[2]))
                .withMessageContaining("expected a float[] of 2");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorMap.empty().with("x", DataType.FP32, Shape.of(-1), new float[2]));
        assertThatIllegalArgumentException()
                .isThrownBy(() -> TensorMap.of("x", new String[] {null}).tensors())
                .withMessageContaining("is null");
    }

    @Test
    void reportsMissingTensorsAndOtherTypes() {
        TensorMap p = TensorMap.of("x", new float[] {1}).with("t", "a").with("big", 1L << 40);
        assertThatIllegalArgumentException()
                .isThrownBy(() -> p.floats("y"))
                .withMessage("the payload has no tensor 'y', it has [x, t, big]");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> p.texts("x"))
                .withMessage("tensor 'x': the tensor is of type FP32 (expected: BYTES)");
        assertThatIllegalArgumentException().isThrownBy(() -> p.longs("x")).withMessageContaining("whole numbers");
        assertThatIllegalArgumentException().isThrownBy(() -> p.floats("t")).withMessageContaining("numbers");
        assertThatIllegalArgumentException().isThrownBy(() -> p.booleans("t")).withMessageContaining("BOOL");
        assertThatIllegalArgumentException()
                .isThrownBy(() -> p.ints("big"))
                .withMessageContaining("which is not an int");
    }

    @Test
    void changesReturnANewPayload() {
        TensorMap first = TensorMap.of("x", 1f).with("y", 2f);
        TensorMap next = first.without("y").renamed("x", "z").withParameter("k", "v");
        assertThat(first.names()).containsExactly("x", "y");
        assertThat(first.parameters()).isEmpty();
        assertThat(next.names()).containsExactly("z");
        assertThat(next.has("x")).isFalse();
        assertThat(next.parameters()).isEqualTo(Map.of("k", "v"));
        assertThat(next).hasToString("{z: FP32[1]}");
        assertThatIllegalArgumentException().isThrownBy(() -> next.renamed("x", "y"));
    }

    @Test
    void tensorsOfTheServerPassWithoutACopyAndOnlyDuringTheStep() {
        try (Tensor tensor = Tensor.allocate("x", DataType.FP32, Shape.of(2))) {
            tensor.buffer().putFloat(1).putFloat(2);
            TensorValues.Scope scope = new TensorValues.Scope();
            TensorMap given = TensorMap.of(List.of(tensor), Map.of(), scope);
            List<Tensor> passed = given.renamed("x", "y").tensors();
            try {
                assertThat(passed.get(0).name()).isEqualTo("y");
                assertThat(passed.get(0).address()).isEqualTo(tensor.address());
            } finally {
                Tensor.closeAll(passed);
            }
            assertThat(given.buffer("x").getFloat(4)).isEqualTo(2);
            scope.end();
            assertThatThrownBy(() -> given.floats("x"))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining("only during the step");
        }
    }

    @Test
    void rejectsATruncatedBytesTensor() {
        try (Tensor tensor = Tensor.over(
                "x",
                DataType.BYTES,
                Shape.of(2),
                io.nereid.tensor.MemoryRegion.copyOf(
                        ByteBuffer.allocate(9)
                                .order(ByteOrder.LITTLE_ENDIAN)
                                .putInt(1)
                                .put((byte) 'a')
                                .putInt(5)
                                .array(),
                        0,
                        9),
                0,
                9)) {
            TensorMap given = TensorMap.of(List.of(tensor), Map.of(), new TensorValues.Scope());
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> given.texts("x"))
                    .withMessage("tensor 'x': the bytes of the tensor end within its element 1");
        }
    }
}
