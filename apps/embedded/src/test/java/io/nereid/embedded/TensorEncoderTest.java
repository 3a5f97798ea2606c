// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ServingException;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.tensor.TensorElements;
import java.nio.ByteBuffer;
import java.nio.DoubleBuffer;
import java.nio.FloatBuffer;
import java.util.Arrays;
import java.util.List;
import org.junit.jupiter.api.Test;

class TensorEncoderTest {
    private static TensorSpec spec(DataType type, long... shape) {
        return new TensorSpec("x", type, Shape.of(shape));
    }

    /** The shape and the values of an encoded value. */
    private static String of(TensorSpec spec, Object value, long... shape) {
        try (Tensor made = TensorEncoder.encode(spec, value, shape.length == 0 ? null : shape)) {
            int count = (int) made.shape().elementCount();
            Object values = switch (made.dataType()) {
                case BYTES -> TensorElements.strings(made.buffer(), DataType.BYTES, count);
                case BOOL -> TensorElements.booleans(made.buffer(), DataType.BOOL, count);
                case FP16, BF16, FP32, FP64 -> TensorElements.doubles(made.buffer(), made.dataType(), count);
                default -> TensorElements.longs(made.buffer(), made.dataType(), count);
            };
            String text = Arrays.deepToString(new Object[] {values});
            return made.shape() + " " + text.substring(1, text.length() - 1);
        }
    }

    @Test
    void arraysListsAndSingleValuesTakeTheTypeOfTheModel() {
        TensorSpec floats = spec(DataType.FP32, -1, 2);
        assertThat(of(floats, new float[][] {{1, 2}, {3, 4.5f}})).isEqualTo("[2,2] [1.0, 2.0, 3.0, 4.5]");
        assertThat(of(floats, new double[][] {{1, 2}})).isEqualTo("[1,2] [1.0, 2.0]");
        assertThat(of(floats, new int[][] {{1, -2}})).isEqualTo("[1,2] [1.0, -2.0]");
        assertThat(of(floats, List.of(List.of(1, 2.5), List.of(3L, 4f)))).isEqualTo("[2,2] [1.0, 2.5, 3.0, 4.0]");
        assertThat(of(spec(DataType.FP64, -1), new float[] {0.5f})).isEqualTo("[1] [0.5]");
        assertThat(of(spec(DataType.INT64, -1), new int[] {7, 8})).isEqualTo("[2] [7, 8]");
        assertThat(of(spec(DataType.INT32, -1), List.of(1.0, 2L))).isEqualTo("[2] [1, 2]");
        assertThat(of(spec(DataType.UINT8, -1), new byte[] {1, -1})).isEqualTo("[2] [1, 255]");
        assertThat(of(spec(DataType.UINT64, -1), new long[] {-1})).isEqualTo("[1] [-1]");
        assertThat(of(spec(DataType.INT16, -1), new short[] {-3})).isEqualTo("[1] [-3]");
        assertThat(of(spec(DataType.BOOL, -1), new boolean[] {true, false})).isEqualTo("[2] [true, false]");
        assertThat(of(spec(DataType.FP16, -1), new double[] {-1.5, 65504, 1e-8}))
                .isEqualTo("[3] [-1.5, 65504.0, 0.0]");
        assertThat(of(spec(DataType.BF16, -1), new float[] {-2.5f})).isEqualTo("[1] [-2.5]");
        assertThat(of(spec(DataType.BYTES, -1), new String[] {"a", "ö"})).isEqualTo("[2] [a, ö]");
        assertThat(of(spec(DataType.BYTES, -1, 1), new byte[][] {{65}, {66, 67}}))
                .isEqualTo("[2,1] [A, BC]");
        assertThat(of(spec(DataType.INT32), 5)).isEqualTo("[] [5]");
        assertThat(of(spec(DataType.FP32, -1, 2), new float[0][0])).isEqualTo("[0] []");
    }

    @Test
    void aRowIsABatchOfOneAndNumbersInARowAreAColumnWhereTheModelWantsOne() {
        assertThat(of(spec(DataType.FP32, -1, 3), new float[] {1, 2, 3})).isEqualTo("[1,3] [1.0, 2.0, 3.0]");
        assertThat(of(spec(DataType.FP32, -1, 1), new float[] {1, 2})).isEqualTo("[2,1] [1.0, 2.0]");
        assertThat(of(spec(DataType.BYTES, -1, 1), "text")).isEqualTo("[] [text]");
        assertThat(of(spec(DataType.BYTES, -1), "text")).isEqualTo("[1] [text]");
    }

    @Test
    void buffersAreReadFromTheirPositionAndKeepIt() {
        FloatBuffer floats = FloatBuffer.wrap(new float[] {9, 1, 2, 3, 4});
        floats.position(1);
        assertThat(of(spec(DataType.FP32, -1, 2), floats)).isEqualTo("[2,2] [1.0, 2.0, 3.0, 4.0]");
        assertThat(floats.position()).isEqualTo(1);
        assertThat(of(spec(DataType.FP32, -1, -1), floats, 1, 4)).isEqualTo("[1,4] [1.0, 2.0, 3.0, 4.0]");
        assertThat(of(spec(DataType.FP16, -1), floats)).isEqualTo("[4] [1.0, 2.0, 3.0, 4.0]");
        assertThat(of(spec(DataType.FP32, 2), DoubleBuffer.wrap(new double[] {1, 2})))
                .isEqualTo("[2] [1.0, 2.0]");
        assertThat(of(spec(DataType.UINT8, -1), ByteBuffer.wrap(new byte[] {1, 2})))
                .isEqualTo("[2] [1, 2]");
        assertThatThrownBy(() -> of(spec(DataType.FP32, -1, -1), floats))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("a buffer without a shape");
        assertThatThrownBy(() -> of(spec(DataType.FP32, -1, 3), floats)).hasMessageContaining("4 elements");
    }

    @Test
    void aTensorIsSharedAndStaysTheCallers() {
        try (Tensor own = Tensor.ofDoubles("y", DataType.FP32, Shape.of(2), new double[] {1, 2})) {
            assertThat(of(spec(DataType.FP32, -1, 2), own)).isEqualTo("[1,2] [1.0, 2.0]");
            assertThat(own.buffer().getFloat()).isEqualTo(1);
        }
    }

    @Test
    void whatDoesNotFitIsRefusedWithTheValue() {
        assertThatThrownBy(() -> of(spec(DataType.INT32, -1), new double[] {1.5}))
                .hasMessageContaining("1.5")
                .hasMessageContaining("whole number");
        assertThatThrownBy(() -> of(spec(DataType.INT8, -1), new int[] {200})).hasMessageContaining("from -128 to 127");
        assertThatThrownBy(() -> of(spec(DataType.INT64, -1), new double[] {Double.NaN}))
                .hasMessageContaining("NaN");
        assertThatThrownBy(() -> of(spec(DataType.FP32, -1, 2), new float[][] {{1, 2}, {3}}))
                .hasMessageContaining("rows of 2 and of 1");
        assertThatThrownBy(() -> of(spec(DataType.FP32, -1), List.of("a"))).hasMessageContaining("a number");
        assertThatThrownBy(() -> of(spec(DataType.FP32, -1), List.of(true))).hasMessageContaining("a number");
        assertThatThrownBy(() -> of(spec(DataType.BOOL, -1), new int[] {1})).hasMessageContaining("a boolean");
        assertThatThrownBy(() -> of(spec(DataType.BYTES, -1), new int[] {1})).hasMessageContaining("a text");
        assertThatThrownBy(() -> of(spec(DataType.BYTES, -1), new String[] {"a", null}))
                .hasMessageContaining("null");
        assertThatThrownBy(() -> of(spec(DataType.FP32, -1), List.of(1, List.of(2))))
                .hasMessageContaining("a number");
        assertThatThrownBy(() -> of(spec(DataType.FP32, -1), new float[] {1, 2}, 3))
                .hasMessageContaining("as many elements");
    }
}
