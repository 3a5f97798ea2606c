// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.request;

import io.nereid.base.ServingException;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

/**
 * Converts a tensor of scores to its top classes, as the classification extension defines: BYTES elements
 * {@code <value>:<index>[:<label>]}, best first, per row. Equal values keep the order of their indices. Stateless.
 */
public final class Classification {
    private static final int MAX_ELEMENTS = 1_000_000;

    private Classification() {}

    /** Returns a new tensor of shape {@code [rows,] min(k, n)}; the caller keeps {@code scores}. */
    public static Tensor top(Tensor scores, int k, boolean batched, List<String> labels) {
        long total = scores.shape().elementCount();
        if (total > MAX_ELEMENTS) {
            throw ServingException.invalidArgument("classification output tensor too large: output '" + scores.name()
                    + "' has " + total + " elements (expected at most " + MAX_ELEMENTS + ")");
        }
        boolean hasRows = batched && scores.shape().rank() > 0;
        int rows = hasRows ? (int) scores.shape().dim(0) : 1;
        int n = rows == 0 ? 0 : (int) (total / rows);
        int top = Math.min(k, n);
        ByteBuffer in = scores.buffer();
        ByteArrayOutputStream out = new ByteArrayOutputStream();
        for (int row = 0; row < rows; row++) {
            int base = row * n;
            DataType type = scores.dataType();
            double[] values = new double[n];
            for (int i = 0; i < n; i++) {
                values[i] = value(type, in, base + i, scores.name());
            }
            int[] order = IntStream.range(0, n)
                    .boxed()
                    .sorted(Comparator.comparingDouble((Integer i) -> values[i]).reversed())
                    .mapToInt(Integer::intValue)
                    .toArray();
            for (int i : Arrays.copyOf(order, top)) {
                String text =
                        (type.isInteger() ? integer(type, in, base + i) : String.format(Locale.ROOT, "%f", values[i]))
                                + ":" + i + (i < labels.size() ? ":" + labels.get(i) : "");
                byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
                for (int shift = 0; shift < 32; shift += 8) {
                    out.write(bytes.length >>> shift);
                }
                out.writeBytes(bytes);
            }
        }
        byte[] bytes = out.toByteArray();
        Shape shape = hasRows ? Shape.of(rows, top) : Shape.of(top);
        return Tensor.over(
                scores.name(), DataType.BYTES, shape, MemoryRegion.copyOf(bytes, 0, bytes.length), 0, bytes.length);
    }

    private static double value(DataType type, ByteBuffer in, int i, String name) {
        return switch (type) {
            case UINT8 -> Byte.toUnsignedInt(in.get(i));
            case INT8 -> in.get(i);
            case UINT16 -> Short.toUnsignedInt(in.getShort(2 * i));
            case INT16 -> in.getShort(2 * i);
            case UINT32 -> Integer.toUnsignedLong(in.getInt(4 * i));
            case INT32 -> in.getInt(4 * i);
            case UINT64 -> {
                long v = in.getLong(8 * i);
                yield v >= 0 ? v : (v >>> 1) * 2.0;
            }
            case INT64 -> in.getLong(8 * i);
            case FP32 -> in.getFloat(4 * i);
            case FP64 -> in.getDouble(8 * i);
            case BOOL, FP16, BF16, BYTES ->
                throw ServingException.invalidArgument(
                        "class result not available for output '" + name + "' due to unsupported type '" + type + "'");
        };
    }

    private static String integer(DataType type, ByteBuffer in, int i) {
        return switch (type) {
            case UINT64 -> Long.toUnsignedString(in.getLong(8 * i));
            case INT64 -> Long.toString(in.getLong(8 * i));
            default -> Long.toString((long) value(type, in, i, ""));
        };
    }
}
