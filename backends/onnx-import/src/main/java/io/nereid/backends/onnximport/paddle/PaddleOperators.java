// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.paddle;

import io.nereid.backends.onnximport.onnx.ConstantTensor;
import io.nereid.backends.onnximport.onnx.ElementType;
import io.nereid.backends.onnximport.onnx.OnnxGraph.Value;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.LongStream;
import org.jspecify.annotations.Nullable;

/**
 * The conversions of PaddlePaddle's operators to ONNX, by operator type: elementwise operators, shapes, reductions,
 * products and constants here, the others in {@link PaddleImageOperators}. Immutable.
 */
final class PaddleOperators {
    /** Converts an operator; returns the values of its outputs by output parameter. */
    interface Rule extends Function<PaddleOperatorContext, Map<String, Value>> {}

    private final Map<String, Rule> rules = new HashMap<>();

    PaddleOperators() {
        elements();
        pairs();
        shapes();
        sums();
        products();
        constants();
        PaddleImageOperators.addTo(this);
    }

    @Nullable Rule of(String type) {
        return rules.get(type);
    }

    void out(String type, Function<PaddleOperatorContext, Value> rule) {
        rules.put(type, c -> Map.of("Out", rule.apply(c)));
    }

    void named(String type, String output, Function<PaddleOperatorContext, Value> rule) {
        rules.put(type, c -> Map.of(output, rule.apply(c)));
    }

    /** An operator without attributes that ONNX has, too; its output has the type and rank of the input X. */
    private void same(String type, String onnx) {
        out(type, c -> c.node(onnx, c.in("X")));
    }

    private void elements() {
        Map.ofEntries(
                        Map.entry("relu", "Relu"),
                        Map.entry("sigmoid", "Sigmoid"),
                        Map.entry("tanh", "Tanh"),
                        Map.entry("exp", "Exp"),
                        Map.entry("log", "Log"),
                        Map.entry("sqrt", "Sqrt"),
                        Map.entry("abs", "Abs"),
                        Map.entry("floor", "Floor"),
                        Map.entry("ceil", "Ceil"),
                        Map.entry("round", "Round"),
                        Map.entry("sin", "Sin"),
                        Map.entry("cos", "Cos"),
                        Map.entry("tan", "Tan"),
                        Map.entry("erf", "Erf"),
                        Map.entry("sign", "Sign"),
                        Map.entry("reciprocal", "Reciprocal"),
                        Map.entry("softsign", "Softsign"),
                        Map.entry("logical_not", "Not"),
                        Map.entry("assign", "Identity"))
                .forEach(this::same);
        out("square", c -> c.node("Mul", c.in("X"), c.in("X")));
        out("rsqrt", c -> c.node("Reciprocal", c.node("Sqrt", c.in("X"))));
        out("leaky_relu", c -> with(c, "LeakyRelu", Map.of("alpha", c.real("alpha", 0.02f))));
        out("elu", c -> with(c, "Elu", Map.of("alpha", c.real("alpha", 1))));
        out(
                "selu",
                c -> with(
                        c, "Selu", Map.of("alpha", c.real("alpha", 1.6732632f), "gamma", c.real("scale", 1.0507009f))));
        out("relu6", c -> clip(c, c.in("X"), 0, c.real("threshold", 6)));
        out(
                "hard_sigmoid",
                c -> with(c, "HardSigmoid", Map.of("alpha", c.real("slope", 0.2f), "beta", c.real("offset", 0.5f))));
        out("hard_swish", c -> {
            Value x = c.in("X");
            Value inner = c.node("Add", x, c.number(c.real("offset", 3), x));
            Value gate = clip(c, inner, 0, c.real("threshold", 6));
            return c.node("Div", c.node("Mul", x, gate), c.number(c.real("scale", 6), x));
        });
        out("swish", c -> {
            Value x = c.in("X");
            return c.node("Mul", x, c.node("Sigmoid", c.node("Mul", x, c.number(c.real("beta", 1), x))));
        });
        out("silu", c -> c.node("Mul", c.in("X"), c.node("Sigmoid", c.in("X"))));
        out("softplus", c -> {
            if (c.real("beta", 1) != 1) {
                throw c.rejected("has beta " + c.real("beta", 1) + " (expected: 1)");
            }
            return c.node("Softplus", c.in("X"));
        });
        out("mish", c -> c.node("Mul", c.in("X"), c.node("Tanh", c.node("Softplus", c.in("X")))));
        out("gelu", PaddleOperators::gelu);
        out("pow", c -> {
            c.fixed("FactorTensor");
            return c.node("Pow", c.in("X"), c.number(c.real("factor", 1), c.in("X")));
        });
        out("clip", c -> {
            c.fixed("Min", "Max");
            return clip(c, c.in("X"), c.real("min", -Float.MAX_VALUE), c.real("max", Float.MAX_VALUE));
        });
        out("scale", c -> {
            c.fixed("ScaleTensor");
            Value x = c.in("X");
            Value scale = c.number(c.real("scale", 1), x);
            Value bias = c.number(c.real("bias", 0), x);
            return c.flag("bias_after_scale", true)
                    ? c.node("Add", c.node("Mul", x, scale), bias)
                    : c.node("Mul", c.node("Add", x, bias), scale);
        });
        out("cast", c -> c.cast(c.in("X"), c.type("out_dtype", ElementType.FLOAT)));
        out("softmax", c -> softmax(c, "Softmax"));
        out("log_softmax", c -> softmax(c, "LogSoftmax"));
        out("dropout", c -> {
            Value x = c.in("X");
            // In inference nothing is dropped; depending on the implementation, the values are scaled.
            return c.text("dropout_implementation", "downgrade_in_infer").equals("upscale_in_train")
                    ? c.node("Identity", x)
                    : c.node("Mul", x, c.number(1 - c.real("dropout_prob", 0.5f), x));
        });
    }

    private static Value with(PaddleOperatorContext c, String onnx, Map<String, Object> attributes) {
        return c.node(onnx, List.of(c.in("X")), attributes, c.in("X").rank());
    }

    private static Value clip(PaddleOperatorContext c, Value x, float least, float greatest) {
        return c.node("Clip", x, c.number(least, x), c.number(greatest, x));
    }

    private static Value gelu(PaddleOperatorContext c) {
        Value x = c.in("X");
        Value inner;
        if (c.flag("approximate", false)) {
            Value cubed = c.node("Mul", c.node("Mul", x, x), x);
            Value sum = c.node("Add", x, c.node("Mul", cubed, c.number(0.044715, x)));
            inner = c.node("Tanh", c.node("Mul", sum, c.number(Math.sqrt(2 / Math.PI), x)));
        } else {
            inner = c.node("Erf", c.node("Mul", x, c.number(Math.sqrt(0.5), x)));
        }
        Value half = c.node("Mul", x, c.number(0.5, x));
        return c.node("Mul", half, c.node("Add", inner, c.number(1, x)));
    }

    /** Softmax along one axis. Opset 12 supports that only for the last axis, so another axis is transposed there. */
    private static Value softmax(PaddleOperatorContext c, String onnx) {
        Value x = c.in("X");
        int rank = c.rank(x);
        int axis = c.axis(c.whole("axis", -1), rank);
        Map<String, Object> last = Map.of("axis", (long) rank - 1);
        if (axis == rank - 1) {
            return c.node(onnx, List.of(x), last, rank);
        }
        long[] swap = LongStream.range(0, rank).toArray();
        swap[axis] = rank - 1L;
        swap[rank - 1] = axis;
        return c.transpose(c.node(onnx, List.of(c.transpose(x, swap)), last, rank), swap);
    }

    private void pairs() {
        Map<String, String> arithmetic = Map.of(
                "elementwise_add", "Add",
                "elementwise_sub", "Sub",
                "elementwise_mul", "Mul",
                "elementwise_div", "Div",
                "elementwise_pow", "Pow",
                "elementwise_max", "Max",
                "elementwise_min", "Min",
                "elementwise_mod", "Mod");
        arithmetic.forEach((paddle, onnx) -> out(paddle, c -> {
            List<Value> xy = aligned(c);
            if (onnx.equals("Mod") && xy.get(0).type() == ElementType.FLOAT) {
                throw c.rejected("of floating-point numbers is not supported");
            }
            return c.node(
                    onnx, xy, Map.of(), Math.max(xy.get(0).rank(), xy.get(1).rank()));
        }));
        Map<String, String> comparisons = Map.of(
                "equal", "Equal",
                "less_than", "Less",
                "less_equal", "LessOrEqual",
                "greater_than", "Greater",
                "greater_equal", "GreaterOrEqual",
                "logical_and", "And",
                "logical_or", "Or",
                "logical_xor", "Xor");
        comparisons.forEach((paddle, onnx) -> out(paddle, c -> compared(c, onnx)));
        out("not_equal", c -> c.node("Not", compared(c, "Equal")));
        out(
                "where",
                c -> c.graph()
                        .node(
                                "Where",
                                List.of(c.in("Condition"), c.in("X"), c.in("Y")),
                                Map.of(),
                                c.in("X").type(),
                                c.in("X").rank()));
        out("sum", c -> {
            Value sum = c.all("X").get(0);
            for (Value next : c.all("X").subList(1, c.all("X").size())) {
                sum = c.node("Add", sum, next);
            }
            return c.node("Identity", sum);
        });
    }

    private static Value compared(PaddleOperatorContext c, String onnx) {
        List<Value> xy = aligned(c);
        return c.graph()
                .node(
                        onnx,
                        xy,
                        Map.of(),
                        ElementType.BOOL,
                        Math.max(xy.get(0).rank(), xy.get(1).rank()));
    }

    /**
     * X and Y, aligned for broadcasting: in PaddlePaddle, Y begins at X's dimension {@code axis}; in ONNX, both end
     * alike.
     */
    static List<Value> aligned(PaddleOperatorContext c) {
        Value x = c.in("X");
        Value y = c.in("Y");
        long axis = c.whole("axis", -1);
        if (axis >= 0 && c.rank(y) < c.rank(x)) {
            int behind = (int) (x.rank() - axis - y.rank());
            if (behind < 0) {
                throw c.rejected("has axis " + axis + " for " + y.rank() + " of " + x.rank() + " dimensions");
            }
            if (behind > 0) {
                long[] axes = LongStream.range(y.rank(), y.rank() + behind).toArray();
                y = c.node("Unsqueeze", List.of(y), Map.of("axes", axes), y.rank() + behind);
            }
        }
        return List.of(x, y);
    }

    private void shapes() {
        out("reshape2", c -> {
            c.fixed("Shape", "ShapeTensor");
            return c.reshape(c.in("X"), c.wholes("shape"));
        });
        rules.put("reshape", rules.get("reshape2"));
        out("transpose2", c -> c.transpose(c.in("X"), c.wholes("axis")));
        rules.put("transpose", rules.get("transpose2"));
        out("flatten_contiguous_range", c -> {
            Value x = c.in("X");
            int rank = c.rank(x);
            int first = c.axis(c.whole("start_axis", 1), rank);
            int last = c.axis(c.whole("stop_axis", -1), rank);
            long[] shape = new long[rank - (last - first)];
            // In Reshape, 0 keeps a dimension at the same position, so only those before the range can be kept.
            Arrays.fill(shape, 0, first, 0);
            shape[first] = -1;
            if (last != rank - 1) {
                throw c.rejected("has stop_axis " + last + " of " + rank + " dimensions (expected: the last)");
            }
            return c.reshape(x, shape);
        });
        out("flatten2", c -> c.node("Flatten", List.of(c.in("X")), Map.of("axis", c.whole("axis", 1)), 2));
        out("squeeze2", c -> {
            int rank = c.rank(c.in("X"));
            long[] axes =
                    Arrays.stream(c.wholes("axes")).map(a -> c.axis(a, rank)).toArray();
            if (axes.length == 0) {
                throw c.rejected("has no axes");
            }
            return c.node("Squeeze", List.of(c.in("X")), Map.of("axes", axes), rank - axes.length);
        });
        out("unsqueeze2", c -> {
            c.fixed("AxesTensor", "AxesTensorList");
            Value x = c.in("X");
            for (long axis : c.wholes("axes")) {
                long[] at = {c.axis(axis, c.rank(x) + 1)};
                x = c.node("Unsqueeze", List.of(x), Map.of("axes", at), x.rank() + 1);
            }
            return x;
        });
        out("concat", c -> {
            c.fixed("AxisTensor");
            List<Value> all = c.all("X");
            long axis = c.axis(c.whole("axis", 0), c.rank(all.get(0)));
            return c.node("Concat", all, Map.of("axis", axis), all.get(0).rank());
        });
        named("stack", "Y", c -> {
            int rank = c.rank(c.all("X").get(0)) + 1;
            long axis = c.axis(c.whole("axis", 0), rank);
            List<Value> wider = new ArrayList<>();
            for (Value v : c.all("X")) {
                wider.add(c.node("Unsqueeze", List.of(v), Map.of("axes", new long[] {axis}), rank));
            }
            return c.node("Concat", wider, Map.of("axis", axis), rank);
        });
        out("slice", c -> {
            c.fixed("StartsTensor", "EndsTensor", "StartsTensorList", "EndsTensorList");
            Value x = c.in("Input");
            List<Value> in = List.of(
                    x,
                    c.graph().longs(c.wholes("starts")),
                    c.graph().longs(c.wholes("ends")),
                    c.graph().longs(c.wholes("axes")));
            Value part = c.node("Slice", in, Map.of(), x.rank());
            long[] gone = c.wholes("decrease_axis");
            return gone.length == 0
                    ? part
                    : c.node("Squeeze", List.of(part), Map.of("axes", gone), c.rank(x) - gone.length);
        });
        out("gather", c -> {
            c.fixed("Axis");
            Value index = c.in("Index");
            return c.node(
                    "Gather",
                    List.of(c.in("X"), index),
                    Map.of("axis", c.whole("axis", 0)),
                    c.in("X").rank());
        });
        out("lookup_table_v2", c -> looked(c, c.in("Ids")));
        out("lookup_table", c -> {
            Value ids = c.in("Ids");
            long[] last = {c.rank(ids) - 1};
            return looked(c, c.node("Squeeze", List.of(ids), Map.of("axes", last), ids.rank() - 1));
        });
        out("tile", c -> {
            c.fixed("RepeatTimes", "repeat_times_tensor");
            return c.node(
                    "Tile", List.of(c.in("X"), c.graph().longs(c.wholes("repeat_times"))), Map.of(), c.rank("Out"));
        });
        out("expand_v2", c -> {
            c.fixed("Shape", "expand_shapes_tensor");
            long[] shape =
                    Arrays.stream(c.wholes("shape")).map(d -> d < 0 ? 1 : d).toArray();
            return c.node("Expand", List.of(c.in("X"), c.graph().longs(shape)), Map.of(), shape.length);
        });
        rules.put("split", PaddleOperators::split);
        rules.put("top_k_v2", c -> {
            c.fixed("K");
            Value x = c.in("X");
            Map<String, Object> settings = Map.of(
                    "axis", (long) c.axis(c.whole("axis", -1), c.rank(x)),
                    "largest", c.flag("largest", true) ? 1L : 0L,
                    "sorted", c.flag("sorted", true) ? 1L : 0L);
            List<Value> top = c.graph()
                    .nodes(
                            "TopK",
                            List.of(x, c.graph().longs(c.whole("k", 1))),
                            settings,
                            List.of(x.type(), ElementType.INT64),
                            x.rank());
            return Map.of("Out", top.get(0), "Indices", top.get(1));
        });
    }

    private static Value looked(PaddleOperatorContext c, Value ids) {
        Value rows = c.in("W");
        long padding = c.whole("padding_idx", -1);
        Value found = c.node("Gather", List.of(rows, ids), Map.of("axis", 0L), c.rank(ids) + 1);
        if (padding == -1) {
            return found;
        }
        // The row of the padding index is zero.
        Value number = c.cast(c.graph().longs(padding), ids.type());
        Value is = c.graph().node("Equal", List.of(ids, number), Map.of(), ElementType.BOOL, ids.rank());
        Value keep = c.cast(c.node("Not", is), rows.type());
        Value wider = c.node("Unsqueeze", List.of(keep), Map.of("axes", new long[] {ids.rank()}), ids.rank() + 1);
        return c.node("Mul", found, wider);
    }

    private static Map<String, Value> split(PaddleOperatorContext c) {
        c.fixed("AxisTensor", "SectionsTensorList");
        Value x = c.in("X");
        List<String> names = c.operator().outputs().getOrDefault("Out", List.of());
        long[] sections = c.wholes("sections");
        Map<String, Object> settings = new HashMap<>();
        settings.put("axis", (long) c.axis(c.whole("axis", 0), c.rank(x)));
        if (sections.length > 0) {
            if (LongStream.of(sections).anyMatch(s -> s < 0)) {
                throw c.rejected("has a section of unknown size");
            }
            settings.put("split", sections);
        }
        List<ElementType> types =
                IntStream.range(0, names.size()).mapToObj(i -> x.type()).toList();
        List<Value> parts = c.graph().nodes("Split", List.of(x), settings, types, x.rank());
        Map<String, Value> out = new HashMap<>();
        for (int i = 0; i < parts.size(); i++) {
            out.put("Out:" + i, parts.get(i));
        }
        return out;
    }

    private void sums() {
        Map.of(
                        "reduce_mean", "ReduceMean",
                        "reduce_sum", "ReduceSum",
                        "reduce_max", "ReduceMax",
                        "reduce_min", "ReduceMin",
                        "reduce_prod", "ReduceProd")
                .forEach((paddle, onnx) -> out(paddle, c -> {
                    Value x = c.in("X");
                    boolean keep = c.flag("keep_dim", false);
                    Map<String, Object> settings = new HashMap<>();
                    settings.put("keepdims", keep ? 1L : 0L);
                    int rank = c.rank(x);
                    long[] axes = Arrays.stream(c.wholes("dim"))
                            .map(d -> c.axis(d, rank))
                            .toArray();
                    boolean all = c.flag("reduce_all", false) || axes.length == 0;
                    if (!all) {
                        settings.put("axes", axes);
                    }
                    return c.node(onnx, List.of(x), settings, keep ? rank : all ? 0 : rank - axes.length);
                }));
        out("mean", c -> c.node("ReduceMean", List.of(c.in("X")), Map.of("keepdims", 0L), 0));
        Map.of("arg_max", "ArgMax", "arg_min", "ArgMin")
                .forEach((paddle, onnx) -> out(paddle, c -> {
                    Value x = c.in("X");
                    boolean keep = c.flag("keepdims", false);
                    int rank = c.rank(x);
                    boolean flat = c.flag("flatten", false);
                    Value from = flat ? c.reshape(x, -1) : x;
                    Map<String, Object> settings = Map.of(
                            "axis", (long) (flat ? 0 : c.axis(c.whole("axis", -1), rank)), "keepdims", keep ? 1L : 0L);
                    Value found = c.graph()
                            .node(onnx, List.of(from), settings, ElementType.INT64, flat ? 0 : keep ? rank : rank - 1);
                    return c.cast(found, c.type("dtype", ElementType.INT64));
                }));
    }

    private void products() {
        out("mul", c -> {
            Value x = c.in("X");
            Value y = c.in("Y");
            int split = (int) c.whole("x_num_col_dims", 1);
            if (c.whole("y_num_col_dims", 1) != 1 || c.rank(y) != 2) {
                throw c.rejected("has a second factor that is not a matrix");
            }
            if (split == c.rank(x) - 1) {
                return c.node("MatMul", List.of(x, y), Map.of(), x.rank());
            }
            if (split != 1) {
                throw c.rejected("has x_num_col_dims " + split + " for " + x.rank() + " dimensions");
            }
            Value flat = c.node("Flatten", List.of(x), Map.of("axis", 1L), 2);
            return c.node("MatMul", List.of(flat, y), Map.of(), 2);
        });
        out("matmul_v2", c -> matmul(c, "trans_x", "trans_y", 1));
        out("matmul", c -> matmul(c, "transpose_X", "transpose_Y", c.real("alpha", 1)));
        out("bmm", c -> c.node("MatMul", c.in("X"), c.in("Y")));
    }

    private static Value matmul(PaddleOperatorContext c, String left, String right, float alpha) {
        Value x = turned(c, c.in("X"), c.flag(left, false));
        Value y = turned(c, c.in("Y"), c.flag(right, false));
        Value product = c.node("MatMul", List.of(x, y), Map.of(), c.rank("Out"));
        return alpha == 1 ? product : c.node("Mul", product, c.number(alpha, x));
    }

    private static Value turned(PaddleOperatorContext c, Value value, boolean turn) {
        int rank = c.rank(value);
        if (!turn || rank < 2) {
            return value;
        }
        long[] order = LongStream.range(0, rank).toArray();
        order[rank - 1] = rank - 2L;
        order[rank - 2] = rank - 1L;
        return c.transpose(value, order);
    }

    private void constants() {
        out("fill_constant", c -> {
            c.fixed("ValueTensor", "ShapeTensor", "ShapeTensorList");
            String text = c.text("str_value", "");
            double number = text.isEmpty() ? c.real("value", 0) : Double.parseDouble(text);
            long[] shape = c.wholes("shape");
            return c.graph().constant("filled", filled(c, c.type("dtype", ElementType.FLOAT), shape, number));
        });
        out("assign_value", c -> {
            float[] reals = c.reals("fp32_values");
            long[] wholes = c.wholes("int32_values").length > 0 ? c.wholes("int32_values") : c.wholes("int64_values");
            ElementType type = c.type("dtype", ElementType.FLOAT);
            if (reals.length == 0 && wholes.length == 0) {
                reals = c.reals("values");
            }
            return c.graph().constant("values", values(c, type, c.wholes("shape"), reals, wholes));
        });
        out(
                "shape",
                c -> c.cast(
                        c.graph().node("Shape", List.of(c.in("Input")), Map.of(), ElementType.INT64, 1),
                        ElementType.INT32));
    }

    private static ConstantTensor values(
            PaddleOperatorContext c, ElementType type, long[] shape, float[] reals, long[] wholes) {
        int count = Math.max(reals.length, wholes.length);
        ByteBuffer raw = ByteBuffer.allocate(Math.multiplyExact(count, 8)).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < count; i++) {
            put(c, raw, type, reals.length > 0 ? reals[i] : wholes[i]);
        }
        return new ConstantTensor(type, shape, Arrays.copyOf(raw.array(), raw.position()), List.of());
    }

    private static ConstantTensor filled(PaddleOperatorContext c, ElementType type, long[] shape, double number) {
        long count = 1;
        for (long d : shape) {
            count = Math.multiplyExact(count, d);
        }
        if (count < 0 || count > 1 << 24) {
            throw c.rejected("fills a tensor of " + count + " elements");
        }
        ByteBuffer raw = ByteBuffer.allocate((int) count * 8).order(ByteOrder.LITTLE_ENDIAN);
        for (int i = 0; i < count; i++) {
            put(c, raw, type, number);
        }
        return new ConstantTensor(type, shape, Arrays.copyOf(raw.array(), raw.position()), List.of());
    }

    private static void put(PaddleOperatorContext c, ByteBuffer to, ElementType type, double number) {
        switch (type) {
            case FLOAT -> to.putFloat((float) number);
            case DOUBLE -> to.putDouble(number);
            case INT32 -> to.putInt((int) number);
            case INT64 -> to.putLong((long) number);
            case BOOL -> to.put((byte) (number != 0 ? 1 : 0));
            default -> throw c.rejected("makes elements of type " + type);
        }
    }
}
