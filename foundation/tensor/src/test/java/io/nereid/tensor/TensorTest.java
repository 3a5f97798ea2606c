// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.base.ServingException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

class TensorTest {
    @Test
    void bytesElementsFollowTheirLengths() {
        try (Tensor tensor = Tensor.ofBytes("t", Shape.of(3), new byte[][] {bytes("ab"), {}, bytes("c")})) {
            assertThat(tensor.dataType()).isEqualTo(DataType.BYTES);
            assertThat(tensor.byteLength()).isEqualTo(15);
            ByteBuffer buffer = tensor.buffer();
            assertThat(text(buffer)).isEqualTo("ab");
            assertThat(text(buffer)).isEmpty();
            assertThat(text(buffer)).isEqualTo("c");
        }
    }

    @Test
    void doublesAreConvertedToTheTypeOfTheTensor() {
        double[] values = {0, 1.75, -3};
        assertThat(buffer(DataType.FP64, values).asDoubleBuffer().get(1)).isEqualTo(1.75);
        assertThat(buffer(DataType.FP32, values).asFloatBuffer().get(2)).isEqualTo(-3f);
        assertThat(buffer(DataType.INT64, values).asLongBuffer().get(1)).isEqualTo(1);
        assertThat(buffer(DataType.INT32, values).asIntBuffer().get(2)).isEqualTo(-3);
        assertThat(buffer(DataType.UINT32, new double[] {3e9}).asIntBuffer().get(0))
                .isEqualTo((int) 3_000_000_000L);
        assertThat(buffer(DataType.INT16, values).asShortBuffer().get(2)).isEqualTo((short) -3);
        assertThat(buffer(DataType.UINT8, new double[] {200}).get(0)).isEqualTo((byte) 200);
        assertThat(buffer(DataType.BOOL, values)).isEqualTo(ByteBuffer.wrap(new byte[] {0, 1, 1}));
    }

    private static ByteBuffer buffer(DataType type, double[] values) {
        try (Tensor tensor = Tensor.ofDoubles("t", type, Shape.of(values.length), values)) {
            ByteBuffer copy = ByteBuffer.allocate(tensor.byteLength())
                    .order(tensor.buffer().order());
            return copy.put(tensor.buffer()).flip();
        }
    }

    @Test
    void doublesAreRejectedForHalfFloats() {
        assertThatThrownBy(() -> Tensor.ofDoubles("t", DataType.FP16, Shape.of(1), new double[1]))
                .isInstanceOf(ServingException.class)
                .hasMessageContaining("FP16");
    }

    @Test
    void aTensorIsFoundByItsName() {
        try (Tensor a = Tensor.allocate("a", DataType.INT8, Shape.of(1));
                Tensor b = Tensor.allocate("b", DataType.INT8, Shape.of(1))) {
            assertThat(Tensor.find(List.of(a, b), "b")).isSameAs(b);
            assertThat(Tensor.find(List.of(a, b), "c")).isNull();
        }
    }

    @Test
    void aScopeClosesWhatItHasNotReleased() {
        AtomicInteger freed = new AtomicInteger();
        try (TensorScope scope = new TensorScope()) {
            scope.add(foreign(freed));
            scope.add(foreign(freed));
        }
        assertThat(freed).hasValue(2);
    }

    @Test
    void aScopeHandsItsTensorsOverInOrder() {
        AtomicInteger freed = new AtomicInteger();
        List<Tensor> released;
        Tensor first;
        try (TensorScope scope = new TensorScope()) {
            first = scope.add(foreign(freed));
            scope.allocate("second", DataType.FP32, Shape.of(2));
            released = scope.release();
        }
        assertThat(freed).hasValue(0);
        assertThat(released.get(0)).isSameAs(first);
        assertThat(released.get(1).name()).isEqualTo("second");
        Tensor.closeAll(released);
        assertThat(freed).hasValue(1);
    }

    private static Tensor foreign(AtomicInteger freed) {
        MemoryRegion region = MemoryRegion.wrap(ByteBuffer.allocateDirect(4), freed::incrementAndGet);
        return Tensor.over("t", DataType.FP32, Shape.of(1), region, 0, 4);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static String text(ByteBuffer buffer) {
        byte[] text = new byte[buffer.getInt()];
        buffer.get(text);
        return new String(text, StandardCharsets.UTF_8);
    }
}
