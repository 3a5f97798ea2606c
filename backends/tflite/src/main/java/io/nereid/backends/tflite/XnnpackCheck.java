// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import static io.nereid.backends.tflite.FlatBufferModelReader.field;
import static io.nereid.backends.tflite.FlatBufferModelReader.length;
import static io.nereid.backends.tflite.FlatBufferModelReader.number;
import static io.nereid.backends.tflite.FlatBufferModelReader.numbers;
import static io.nereid.backends.tflite.FlatBufferModelReader.tables;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;

/**
 * Finds models that XNNPACK's delegate must not see. The built-in kernels refuse what is wrong with a model or ignore
 * it, but the delegate reads missing quantization parameters, and logs wrong ones through a null context: the process
 * would end. No converter writes such models; damage does. Stateless.
 *
 * <p>Field numbers are those of TensorFlow Lite's schema.fbs, as in {@link FlatBufferModelReader}, whose check comes
 * first.
 */
final class XnnpackCheck {
    private static final int UINT8 = 3;
    private static final int INT8 = 9;
    private static final int INT4 = 17;

    /** What a tensor says about its quantization. */
    private enum Quantization {
        OTHER_TYPE,
        ABSENT,
        PRESENT
    }

    private XnnpackCheck() {}

    /** Returns why the built-in kernels alone must run a model; null when XNNPACK may run it, too. */
    static @Nullable String obstacle(byte[] bytes) {
        ByteBuffer in = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
        int model = in.getInt(0);
        int[] graphs = tables(in, model, 2);
        for (int graph : graphs) {
            String obstacle = quantization(in, graph);
            if (obstacle != null) {
                return obstacle;
            }
        }
        for (int signature : tables(in, model, 7)) {
            int graph = graphs[(int) number(in, signature, 4)];
            for (int side = 0; side < 2; side++) {
                int[] own = numbers(in, graph, 1 + side);
                for (int map : tables(in, signature, side)) {
                    int tensor = (int) number(in, map, 1);
                    // XNNPACK gives memory to the tensors at its borders only.
                    if (Arrays.stream(own).noneMatch(t -> t == tensor)) {
                        return "a signature names tensor " + tensor + ", which its graph does not list as one of its "
                                + (side == 0 ? "inputs" : "outputs");
                    }
                }
            }
        }
        return null;
    }

    private static @Nullable String quantization(ByteBuffer in, int graph) {
        int[] tensors = tables(in, graph, 0);
        Quantization[] all = new Quantization[tensors.length];
        for (int i = 0; i < tensors.length; i++) {
            int at = field(in, tensors[i], 1);
            int type = at == 0 ? 0 : in.get(at);
            int parameters = table(in, tensors[i], 4);
            boolean present = parameters != 0 && numbers(in, parameters, 2).length > 0;
            boolean eight = type == UINT8 || type == INT8 || type == INT4;
            if (parameters != 0 && field(in, parameters, 5) != 0
                    || present && !valid(in, tensors[i], parameters, type)) {
                return "the quantization parameters of tensor " + i + " are not those of its type and shape";
            }
            all[i] = !eight ? Quantization.OTHER_TYPE : present ? Quantization.PRESENT : Quantization.ABSENT;
        }
        for (int operator : tables(in, graph, 3)) {
            boolean present = false;
            boolean absent = false;
            for (int side = 1; side <= 2; side++) {
                for (int tensor : numbers(in, operator, side)) {
                    present |= tensor >= 0 && all[tensor] == Quantization.PRESENT;
                    absent |= tensor >= 0 && all[tensor] == Quantization.ABSENT;
                }
            }
            if (present && absent) {
                return "an operator has tensors of 8 bits with and without quantization parameters";
            }
        }
        return null;
    }

    private static boolean valid(ByteBuffer in, int tensor, int parameters, int type) {
        int[] scales = numbers(in, parameters, 2);
        for (int bits : scales) {
            float scale = Float.intBitsToFloat(bits);
            if (!(scale >= Float.MIN_NORMAL && scale <= Float.MAX_VALUE)) {
                return false;
            }
        }
        int points = field(in, parameters, 3);
        int count = points == 0 ? 0 : length(in, points, 8);
        if (count != 0 && count != scales.length) {
            return false;
        }
        for (int i = 0; i < count; i++) {
            long point = in.getLong(points + in.getInt(points) + 4 + 8 * i);
            long least = type == UINT8 ? 0 : type == INT8 ? Byte.MIN_VALUE : Integer.MIN_VALUE;
            long most = type == UINT8 ? 255 : type == INT8 ? Byte.MAX_VALUE : Integer.MAX_VALUE;
            if (point < least || point > most) {
                return false;
            }
        }
        int[] shape = numbers(in, tensor, 0);
        long axis = number(in, parameters, 6);
        return scales.length == 1 || axis < shape.length && shape[(int) axis] == scales.length;
    }

    /** The position of the table that a field refers to; 0 when the field is absent. */
    private static int table(ByteBuffer in, int table, int index) {
        int at = field(in, table, index);
        return at == 0 ? 0 : Math.addExact(at, in.getInt(at));
    }
}
