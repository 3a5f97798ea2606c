// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;

/** Creates tensors and counts those that have not been freed. Thread-safe. */
public final class CountedTensors {
    private final AtomicInteger made = new AtomicInteger();
    private final AtomicInteger freed = new AtomicInteger();

    public Tensor ints(String name, Shape shape, int... values) {
        ByteBuffer bytes = bytes(4 * values.length);
        for (int i = 0; i < values.length; i++) {
            bytes.putInt(4 * i, values[i]);
        }
        return over(name, DataType.INT32, shape, bytes);
    }

    public Tensor floats(String name, Shape shape, float... values) {
        ByteBuffer bytes = bytes(4 * values.length);
        for (int i = 0; i < values.length; i++) {
            bytes.putFloat(4 * i, values[i]);
        }
        return over(name, DataType.FP32, shape, bytes);
    }

    public Tensor texts(String name, Shape shape, String... values) {
        ByteBuffer bytes = bytes(1000);
        for (String value : values) {
            byte[] utf8 = value.getBytes(StandardCharsets.UTF_8);
            bytes.putInt(utf8.length).put(utf8);
        }
        ByteBuffer exact = bytes(bytes.position());
        exact.put(0, bytes, 0, exact.capacity());
        return over(name, DataType.BYTES, shape, exact);
    }

    private static ByteBuffer bytes(int length) {
        return ByteBuffer.allocateDirect(length).order(ByteOrder.LITTLE_ENDIAN);
    }

    private Tensor over(String name, DataType type, Shape shape, ByteBuffer bytes) {
        made.incrementAndGet();
        int length = bytes.capacity();
        return Tensor.over(name, type, shape, MemoryRegion.wrap(bytes, freed::incrementAndGet), 0, length);
    }

    public void assertAllFreed() {
        assertThat(freed).as("tensors freed").hasValue(made.get());
    }

    public static int[] ints(Tensor t) {
        int[] values = new int[t.byteLength() / 4];
        t.buffer().asIntBuffer().get(values);
        return values;
    }

    public static float[] floats(Tensor t) {
        float[] values = new float[t.byteLength() / 4];
        t.buffer().asFloatBuffer().get(values);
        return values;
    }

    public static List<String> texts(Tensor t) {
        List<String> texts = new ArrayList<>();
        ByteBuffer bytes = t.buffer();
        while (bytes.hasRemaining()) {
            byte[] utf8 = new byte[bytes.getInt()];
            bytes.get(utf8);
            texts.add(new String(utf8, StandardCharsets.UTF_8));
        }
        return texts;
    }
}
