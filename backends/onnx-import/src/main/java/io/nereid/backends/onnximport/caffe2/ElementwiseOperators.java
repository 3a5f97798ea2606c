// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.caffe2;

import static io.nereid.backends.onnximport.caffe2.OperatorContext.attributes;

import io.nereid.backends.onnximport.onnx.ConstantTensor;
import io.nereid.backends.onnximport.onnx.ElementType;
import io.nereid.backends.onnximport.onnx.OnnxGraph.Value;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Conversions of elementwise operators, comparisons, activations and matrix products. Stateless. */
final class ElementwiseOperators {
    private ElementwiseOperators() {}

    /** An operator without arguments that ONNX has, too. */
    static Caffe2Operators.Conversion same(String type) {
        return c -> List.of(c.like(type, Map.of()));
    }

    /** An operator that ONNX has, too, with one numeric argument of the same name. */
    static Caffe2Operators.Conversion same(String type, String setting, float otherwise) {
        return c -> List.of(c.like(type, attributes(setting, c.number(setting, otherwise))));
    }

    static List<Value> selu(OperatorContext c) {
        return List.of(c.like(
                "Selu", attributes("alpha", c.number("alpha", 1.6732632f), "gamma", c.number("scale", 1.050701f))));
    }

    static List<Value> hardSigmoid(OperatorContext c) {
        return List.of(
                c.like("HardSigmoid", attributes("alpha", c.number("alpha", 0.2f), "beta", c.number("beta", 0.5f))));
    }

    static List<Value> swish(OperatorContext c) {
        Value gate = c.like("Sigmoid", Map.of());
        return List.of(c.node("Mul", List.of(c.in(0), gate), Map.of(), c.in(0).rank()));
    }

    static List<Value> square(OperatorContext c) {
        return List.of(
                c.node("Mul", List.of(c.in(0), c.in(0)), Map.of(), c.in(0).rank()));
    }

    static List<Value> inverseRoot(OperatorContext c) {
        Value root = c.like("Sqrt", Map.of());
        return List.of(c.node("Reciprocal", List.of(root), Map.of(), root.rank()));
    }

    static List<Value> scale(OperatorContext c) {
        Value scale = c.graph().scalar(c.number("scale", 1));
        return List.of(c.node("Mul", List.of(c.in(0), scale), Map.of(), c.in(0).rank()));
    }

    static List<Value> pow(OperatorContext c) {
        return c.in().size() > 1
                ? two(c, "Pow", c.in(0).type())
                : List.of(c.node(
                        "Pow",
                        List.of(c.in(0), c.graph().scalar(c.number("exponent", 1))),
                        Map.of(),
                        c.in(0).rank()));
    }

    static List<Value> clip(OperatorContext c) {
        Value low = c.graph().scalar(c.number("min", -Float.MAX_VALUE));
        Value high = c.graph().scalar(c.number("max", Float.MAX_VALUE));
        return List.of(
                c.node("Clip", List.of(c.in(0), low, high), Map.of(), c.in(0).rank()));
    }

    static List<Value> prelu(OperatorContext c) {
        Value x = c.in(0);
        Value slope = c.in(1);
        ConstantTensor known = slope.constant();
        boolean each = known == null || known.count() != 1;
        if (each && !c.channelsLast() && c.rank(x) > 2) {
            long[] behind = new long[x.rank() - 2];
            for (int i = 0; i < behind.length; i++) {
                behind[i] = i + 1L;
            }
            slope = c.node("Unsqueeze", List.of(slope), attributes("axes", behind), x.rank() - 1);
        }
        return List.of(c.node("PRelu", List.of(x, slope), Map.of(), x.rank()));
    }

    static List<Value> dropout(OperatorContext c) {
        if (!c.flag("is_test")) {
            throw c.rejected("is for training (is_test is not set)", "export the net for inference");
        }
        return List.of(c.like("Identity", Map.of()));
    }

    static List<Value> softmax(OperatorContext c) {
        int axis = c.axis("axis", 1);
        // Like Caffe2's, ONNX's Softmax of opset 12 is over all dimensions from this one on.
        if (c.flag("one_axis") && axis != -1 && axis != c.rank(c.in(0)) - 1) {
            throw c.rejected("is over dimension " + axis + ", expected the last", "export the model to ONNX");
        }
        return List.of(c.like("Softmax", attributes("axis", (long) axis)));
    }

    /** Sum, Max, Min or Mean of any number of tensors of one shape. */
    static Caffe2Operators.Conversion many(String type) {
        return c -> List.of(c.node(type, c.in(), Map.of(), c.in(0).rank()));
    }

    /** Arithmetic on two tensors. */
    static Caffe2Operators.Conversion arithmetic(String type) {
        return c -> two(c, type, c.in(0).type());
    }

    /** A comparison or a logical operator. */
    static Caffe2Operators.Conversion truth(String type) {
        return c -> two(c, type, ElementType.BOOL);
    }

    private static List<Value> two(OperatorContext c, String type, ElementType elements) {
        Value a = c.in(0);
        Value b = c.in(1);
        if (c.flag("broadcast") || c.has("axis")) {
            String order = c.text("order", "NCHW");
            String axisName = c.text("axis_str", "");
            long axis = axisName.isEmpty() ? c.axis("axis", -1) : order.indexOf(axisName);
            ConstantTensor known = b.constant();
            // Caffe2 aligns b with the dimensions of a from axis on; ONNX aligns at the end. So append dimensions of 1.
            // A single element needs none.
            if (axis >= 0 && !(known != null && known.count() == 1)) {
                int behind = c.rank(a) - (int) axis - c.rank(b);
                if (behind < 0) {
                    throw c.rejected(
                            "has axis " + axis + " for tensors of " + a.rank() + " and " + b.rank() + " dimensions",
                            "the file is damaged: export it again");
                }
                if (behind > 0) {
                    long[] axes = new long[behind];
                    for (int i = 0; i < behind; i++) {
                        axes[i] = (long) b.rank() + i;
                    }
                    b = c.node("Unsqueeze", List.of(b), attributes("axes", axes), b.rank() + behind);
                }
            }
        }
        int rank = a.rank() < 0 || b.rank() < 0 ? -1 : Math.max(a.rank(), b.rank());
        return List.of(c.graph().node(type, List.of(a, b), Map.of(), elements, rank));
    }

    static List<Value> not(OperatorContext c) {
        return List.of(c.like("Not", Map.of()));
    }

    static List<Value> where(OperatorContext c) {
        List<Value> in = List.of(c.in(0), c.in(1), c.in(2));
        return List.of(
                c.graph().node("Where", in, Map.of(), c.in(1).type(), c.in(1).rank()));
    }

    static List<Value> cast(OperatorContext c) {
        String name = c.text("to", "");
        ElementType to = name.isEmpty() ? ElementType.ofCaffe2(c.integer("to", 0)) : ElementType.ofName(name);
        if (to == null) {
            throw c.rejected(
                    "casts to type " + (name.isEmpty() ? c.integer("to", 0) : "'" + name + "'")
                            + ", which does not exist",
                    "the file is damaged: export it again");
        }
        return cast(c, to);
    }

    static Caffe2Operators.Conversion castTo(ElementType to) {
        return c -> cast(c, to);
    }

    private static List<Value> cast(OperatorContext c, ElementType to) {
        return List.of(c.graph()
                .node(
                        "Cast",
                        List.of(c.in(0)),
                        attributes("to", (long) to.onnx()),
                        to,
                        c.in(0).rank()));
    }

    /** A fully connected layer: Gemm for a matrix, MatMul and Add for more dimensions. */
    static Caffe2Operators.Conversion fullyConnected(boolean transposed) {
        return c -> {
            Value x = c.in(0);
            Value w = c.in(1);
            int axis = c.axis("axis", 1);
            if (c.integer("axis_w", 1) != 1) {
                throw c.rejected("has axis_w " + c.integer("axis_w", 1) + ", expected 1", "export the model to ONNX");
            }
            if (w.rank() > 2) {
                w = c.node("Flatten", List.of(w), attributes("axis", 1L), 2);
            }
            if (axis == 1) {
                Value flat = x.rank() == 2 ? x : c.node("Flatten", List.of(x), attributes("axis", 1L), 2);
                return List.of(
                        c.node("Gemm", List.of(flat, w, c.in(2)), attributes("transB", transposed ? 0L : 1L), 2));
            }
            if (axis < 1) {
                throw c.rejected("has axis " + axis + ", expected 1 or more", "export the model to ONNX");
            }
            long[] shape = new long[axis + 1];
            shape[axis] = -1;
            Value rows = c.node("Reshape", List.of(x, c.graph().longs(shape)), Map.of(), axis + 1);
            Value weights = transposed ? w : c.node("Transpose", List.of(w), attributes("perm", new long[] {1, 0}), 2);
            Value product = c.node("MatMul", List.of(rows, weights), Map.of(), axis + 1);
            return List.of(c.node("Add", List.of(product, c.in(2)), Map.of(), axis + 1));
        };
    }

    static List<Value> matMul(OperatorContext c) {
        Value a = matrix(c, c.in(0), c.axis("axis_a", 1));
        Value b = matrix(c, c.in(1), c.axis("axis_b", 1));
        return List.of(c.node(
                "MatMul", List.of(turned(c, a, c.flag("trans_a")), turned(c, b, c.flag("trans_b"))), Map.of(), 2));
    }

    private static Value matrix(OperatorContext c, Value x, int axis) {
        return x.rank() == 2 && axis == 1 ? x : c.node("Flatten", List.of(x), attributes("axis", (long) axis), 2);
    }

    static List<Value> batchMatMul(OperatorContext c) {
        Value a = turned(c, c.in(0), c.flag("trans_a"));
        Value b = turned(c, c.in(1), c.flag("trans_b"));
        int rank = a.rank() < 0 || b.rank() < 0 ? -1 : Math.max(a.rank(), b.rank());
        return List.of(c.node("MatMul", List.of(a, b), Map.of(), rank));
    }

    private static Value turned(OperatorContext c, Value x, boolean turn) {
        if (!turn) {
            return x;
        }
        int rank = x.rank();
        if (rank < 2) {
            throw c.rejected(
                    "transposes a tensor of " + (rank < 0 ? "unknown" : String.valueOf(rank)) + " dimensions",
                    "write the shapes of the inputs into config.pbtxt, or export the model to ONNX");
        }
        List<Long> perm = new ArrayList<>();
        for (int i = 0; i < rank - 2; i++) {
            perm.add((long) i);
        }
        perm.add(rank - 1L);
        perm.add(rank - 2L);
        long[] order = perm.stream().mapToLong(Long::longValue).toArray();
        return c.node("Transpose", List.of(x), attributes("perm", order), rank);
    }
}
