// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.infer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.SmallFloats;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import org.junit.jupiter.api.Test;

class InferTensorTest {
    @Test
    void brainFloatsAreRoundedToTheNearestAndTiesToEven() {
        assertThat(InferTensor.ofBrainFloat(new float[] {1f, 0x1.01p0f, 0x1.03p0f, 0x1.010002p0f, Float.NaN, -3e38f})
                        .asFloats())
                .containsExactly(
                        1f, 1f, 0x1.04p0f, 0x1.02p0f, Float.NaN, SmallFloats.bf16ToFloat(SmallFloats.bf16(-3e38f)));
    }

    @Test
    void nestedArraysHaveTheShapeOfTheirRows() {
        InferTensor cube = InferTensor.ofArray(new int[][][] {{{1, 2}, {3, 4}, {5, 6}}});
        assertThat(cube.toString()).isEqualTo("INT32[1,3,2]");
        assertThat(cube.asInts()).containsExactly(1, 2, 3, 4, 5, 6);
        assertThat(InferTensor.ofArray(new float[0][]).shape()).containsExactly(0, 0);
        assertThat(InferTensor.ofArray(new String[][] {{"a"}, {"b"}}).asStrings())
                .containsExactly("a", "b");
        assertThat(InferTensor.ofArray(new short[] {-1}).dataType()).isEqualTo(TensorDataType.INT16);
        assertThatThrownBy(() -> InferTensor.ofArray(new float[][] {{1, 2}, {3}}))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessageContaining("1 elements in dimension 1");
        assertThatThrownBy(() -> InferTensor.ofArray("text")).hasMessageContaining("java.lang.String");
    }

    @Test
    void aShapeThatDoesNotFitIsRefused() {
        assertThatThrownBy(() -> InferTensor.of(new float[] {1, 2, 3}, 2, 2))
                .isInstanceOf(IllegalArgumentException.class)
                .hasMessage("shape [2,2] has 4 elements, but 3 are given");
        assertThatThrownBy(() -> InferTensor.of(new float[] {1}, -1)).hasMessageContaining("negative");
        assertThatThrownBy(() -> InferTensor.raw(TensorDataType.INT32, ByteBuffer.allocate(7), 2))
                .hasMessage("the data has 7 bytes (expected: 8, of INT32[2])");
        assertThatThrownBy(() -> InferTensor.raw(TensorDataType.BYTES, ByteBuffer.wrap(new byte[] {9, 0, 0, 0, 1}), 1))
                .hasMessageContaining("element 0 of the BYTES data ends after the data");
    }

    @Test
    void conversionsAreExactOrRefused() {
        InferTensor unsigned = InferTensor.raw(
                TensorDataType.UINT64, InferTensor.of(new long[] {-1, 1L << 62}).bytes(), 2);
        assertThat(unsigned.asDoubles()).containsExactly(0x1p64, 0x1p62);
        assertThat(unsigned.asLongs()).containsExactly(-1, 1L << 62);
        assertThatThrownBy(unsigned::asInts)
                .isInstanceOf(ArithmeticException.class)
                .hasMessageContaining("18446744073709551615");
        assertThat(InferTensor.of(new boolean[] {true, false}).asLongs()).containsExactly(1, 0);
        assertThatThrownBy(InferTensor.of(new float[] {1})::asLongs)
                .isInstanceOf(IllegalStateException.class)
                .hasMessageContaining("FP32");
        assertThatThrownBy(InferTensor.of(new long[] {1})::asStrings).hasMessageContaining("INT64");
        FloatBuffer buffer = FloatBuffer.wrap(new float[] {1, 2, 3}).position(1);
        assertThat(InferTensor.of(buffer).asFloats()).containsExactly(2, 3);
        assertThat(buffer.position()).isEqualTo(1);
    }

    @Test
    void aRequestRefusesWhatItCannotSend() {
        InferRequest.Builder builder = InferRequest.builder("m").input("x", new float[] {1});
        assertThatThrownBy(() -> builder.input("x", new float[] {2})).hasMessage("input 'x' is given twice");
        assertThatThrownBy(() -> builder.parameter("p", new Object())).hasMessageContaining("java.lang.Object");
        assertThatThrownBy(() -> builder.sequence(0, true, false)).hasMessageContaining("0 is reserved");
        assertThatThrownBy(() -> InferRequest.builder("")).hasMessageContaining("empty");
        assertThat(builder.sequence("s", true, false).build().isSequence()).isTrue();
    }
}
