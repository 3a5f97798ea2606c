// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.caffe2;

import io.nereid.backends.onnximport.caffe2.NetDef.Argument;
import io.nereid.backends.onnximport.caffe2.NetDef.Operator;
import io.nereid.tensor.Shape;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Infers the shapes of inputs, which Caffe2 nets do not declare, from the weights of the first operators that read
 * them: a convolution's weight has the number of channels, a fully connected layer's the width. Operators that keep the
 * shape are followed to the next one. Confined to one load.
 */
final class InputShapes {
    /** Operators whose output has the shape of their input. */
    private static final Set<String> ALIKE = Set.of(
            "Relu",
            "Sigmoid",
            "Tanh",
            "LeakyRelu",
            "Elu",
            "Selu",
            "Clip",
            "Copy",
            "Alias",
            "StopGradient",
            "Dropout",
            "LRN",
            "Scale",
            "Abs",
            "Exp",
            "Sqr",
            "Sqrt",
            "Negative",
            "Sum",
            "PRelu",
            "Swish",
            "Softsign",
            "Softplus",
            "HardSigmoid",
            "InstanceNorm");

    private final List<Operator> operators;
    private final Map<String, long[]> constants = new HashMap<>();
    private final Set<String> seen = new HashSet<>();

    InputShapes(List<Operator> operators) {
        this.operators = operators;
        for (Operator o : operators) {
            Argument shape = o.arguments().get("shape");
            if (o.inputs().isEmpty() && o.outputs().size() == 1) {
                constants.put(o.outputs().get(0), shape == null ? new long[0] : shape.ints());
            }
        }
    }

    /** The shape of an input blob, with the batch dimension first; null when it cannot be inferred. */
    @Nullable Shape of(String blob) {
        seen.clear();
        return follow(blob, 0);
    }

    private @Nullable Shape follow(String blob, int from) {
        if (!seen.add(from + " " + blob)) {
            return null;
        }
        for (int i = from; i < operators.size(); i++) {
            Operator o = operators.get(i);
            int at = o.inputs().indexOf(blob);
            if (at >= 0) {
                Shape shape = read(o, at, i);
                if (shape != null) {
                    return shape;
                }
            }
            if (o.outputs().contains(blob)) {
                return null;
            }
        }
        return null;
    }

    private @Nullable Shape read(Operator o, int at, int index) {
        if (o.type().equals("Sum") && at > 0) {
            return follow(o.outputs().get(0), index + 1);
        }
        if (at > 0 || o.outputs().isEmpty()) {
            return null;
        }
        boolean last = order(o).equals("NHWC");
        long[] w = o.inputs().size() > 1 ? constants.get(o.inputs().get(1)) : null;
        String type = o.type();
        if (type.startsWith("Conv") && w != null && w.length > 2) {
            boolean transposed = type.equals("ConvTranspose");
            long channels = transposed ? w[0] : w[last ? w.length - 1 : 1];
            // The weight of a transposed convolution has all input channels, that of a convolution those of one group.
            return grid(w.length, transposed ? channels : channels * Math.max(1, integer(o, "group", 1)), last);
        }
        if (type.equals("SpatialBN") && w != null && w.length == 1) {
            Shape behind = follow(o.outputs().get(0), index + 1);
            return behind != null ? behind : grid(4, w[0], last);
        }
        if ((type.equals("FC") || type.equals("FCTransposed"))
                && w != null
                && w.length == 2
                && integer(o, "axis", 1) == 1) {
            return rows(type.equals("FC") ? w[1] : w[0]);
        }
        if (type.equals("MatMul") && w != null && w.length == 2 && integer(o, "trans_a", 0) == 0) {
            return rows(integer(o, "trans_b", 0) == 0 ? w[0] : w[1]);
        }
        if (type.startsWith("MaxPool") || type.startsWith("AveragePool")) {
            Shape behind = follow(o.outputs().get(0), index + 1);
            if (behind != null) {
                return behind;
            }
            Argument kernels = o.arguments().get("kernels");
            return grid(kernels == null || kernels.ints().length == 0 ? 4 : kernels.ints().length + 2, -1, last);
        }
        return ALIKE.contains(type) ? follow(o.outputs().get(0), index + 1) : null;
    }

    private static Shape rows(long width) {
        return Shape.of(-1, Math.toIntExact(width));
    }

    private static @Nullable Shape grid(int rank, long channels, boolean last) {
        if (rank > 8) {
            return null;
        }
        long[] dims = new long[rank];
        Arrays.fill(dims, -1);
        dims[last ? rank - 1 : 1] = channels;
        return Shape.of(dims);
    }

    private static String order(Operator o) {
        Argument order = o.arguments().get("order");
        String s = order == null ? null : order.s();
        return s == null ? "NCHW" : s;
    }

    private static long integer(Operator o, String name, long otherwise) {
        Argument a = o.arguments().get(name);
        Long i = a == null ? null : a.i();
        return i == null ? otherwise : i;
    }
}
