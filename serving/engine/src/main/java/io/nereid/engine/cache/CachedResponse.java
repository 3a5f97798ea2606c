// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.cache;

import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A response from the cache. The holder owns the tensors.
 *
 * @param outputs the outputs of the original response
 * @param parameters the parameters of the original response
 */
record CachedResponse(List<Tensor> outputs, Map<String, Object> parameters) {
    /** The first byte of the encoding, its version. */
    private static final byte FORMAT = 1;

    /** Encodes a response for an external store; null when it is too large for an array. */
    static byte @Nullable [] encode(List<Tensor> outputs, Map<String, Object> parameters) {
        long total = 0;
        for (Tensor t : outputs) {
            total += t.byteLength();
        }
        if (total > Integer.MAX_VALUE / 2) {
            return null;
        }
        ByteWriter out = new ByteWriter((int) total + 64 + 64 * outputs.size());
        out.putByte(FORMAT);
        out.putParameters(parameters);
        out.putInt(outputs.size());
        for (Tensor t : outputs) {
            out.putText(t.name());
            out.putText(t.dataType().name());
            out.putInt(t.shape().rank());
            for (int i = 0; i < t.shape().rank(); i++) {
                out.putLong(t.shape().dim(i));
            }
            out.putInt(t.byteLength());
            int at = out.skip(t.byteLength());
            t.region().getBytes(t.offset(), out.array(), at, t.byteLength());
        }
        return out.toArray();
    }

    /** Decodes a response; null when the bytes are not a valid encoding. */
    static @Nullable CachedResponse decode(byte[] bytes) {
        List<Tensor> outputs = new ArrayList<>();
        try {
            ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
            if (in.get() != FORMAT) {
                return null;
            }
            Map<String, Object> parameters = parameters(in);
            int count = in.getInt();
            for (int n = 0; n < count; n++) {
                String name = text(in);
                DataType type = DataType.valueOf(text(in));
                long[] dims = new long[checked(in.getInt(), in.remaining() / 8)];
                for (int i = 0; i < dims.length; i++) {
                    dims[i] = in.getLong();
                }
                Shape shape = Shape.of(dims);
                int length = checked(in.getInt(), in.remaining());
                if (type.isFixedSize() && shape.byteSize(type) != length) {
                    throw new IllegalArgumentException("length");
                }
                MemoryRegion region = MemoryRegion.copyOf(bytes, in.position(), length);
                outputs.add(Tensor.over(name, type, shape, region, 0, length));
                in.position(in.position() + length);
            }
            if (in.hasRemaining()) {
                throw new IllegalArgumentException("rest");
            }
            return new CachedResponse(outputs, parameters);
        } catch (RuntimeException foreign) {
            // another writer's entry or a damaged one: treat it as a cache miss
            Tensor.closeAll(outputs);
            return null;
        }
    }

    private static Map<String, Object> parameters(ByteBuffer in) {
        Map<String, Object> parameters = new HashMap<>();
        int count = checked(in.getInt(), in.remaining());
        for (int i = 0; i < count; i++) {
            String name = text(in);
            int kind = in.get();
            parameters.put(
                    name,
                    switch (kind) {
                        case 0 -> in.get() != 0;
                        case 1 -> in.getLong();
                        case 2 -> Double.longBitsToDouble(in.getLong());
                        case 3 -> text(in);
                        default -> throw new IllegalArgumentException("kind " + kind);
                    });
        }
        return parameters;
    }

    private static String text(ByteBuffer in) {
        byte[] utf8 = new byte[checked(in.getInt(), in.remaining())];
        in.get(utf8);
        return new String(utf8, StandardCharsets.UTF_8);
    }

    private static int checked(int length, int most) {
        if (length < 0 || length > most) {
            throw new IllegalArgumentException("length " + length);
        }
        return length;
    }
}
