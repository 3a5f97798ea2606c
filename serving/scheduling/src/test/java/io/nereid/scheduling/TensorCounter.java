// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.atomic.AtomicInteger;

/** Creates tensors and counts those that have not been freed. Thread-safe. */
public final class TensorCounter {
    private final AtomicInteger open = new AtomicInteger();

    public int open() {
        return open.get();
    }

    public Tensor ints(String name, Shape shape, int... values) {
        ByteBuffer bytes = ByteBuffer.allocateDirect(4 * values.length).order(ByteOrder.LITTLE_ENDIAN);
        for (int v : values) {
            bytes.putInt(v);
        }
        if (values.length > 0) {
            open.incrementAndGet();
        }
        MemoryRegion region =
                values.length == 0 ? MemoryRegion.empty() : MemoryRegion.wrap(bytes, open::decrementAndGet);
        return Tensor.over(name, DataType.INT32, shape, region, 0, 4 * values.length);
    }

    public static int first(Tensor t) {
        return t.byteLength() == 0 ? 0 : t.region().getInt(t.offset());
    }

    /** Returns the first element as text. */
    public static String show(Tensor t) {
        ByteBuffer b = t.buffer();
        return switch (t.dataType()) {
            case BOOL -> b.get(0) == 0 ? "0" : "1";
            case INT32 -> Integer.toString(b.getInt(0));
            case UINT32 -> Integer.toUnsignedString(b.getInt(0));
            case INT64 -> Long.toString(b.getLong(0));
            case UINT64 -> Long.toUnsignedString(b.getLong(0));
            case FP32 -> Float.toString(b.getFloat(0));
            case BYTES -> {
                byte[] text = new byte[b.getInt(0)];
                b.position(4);
                b.get(text);
                yield new String(text, StandardCharsets.UTF_8);
            }
            default -> t.toString();
        };
    }
}
