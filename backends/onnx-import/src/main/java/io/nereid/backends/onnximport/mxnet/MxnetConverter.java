// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.mxnet;

import io.nereid.backends.onnximport.caffe2.ConstantOperators;
import io.nereid.backends.onnximport.caffe2.NetDef;
import io.nereid.backends.onnximport.caffe2.NetDef.Argument;
import io.nereid.backends.onnximport.caffe2.NetDef.Operator;
import io.nereid.backends.onnximport.mxnet.MxnetSymbol.Entry;
import io.nereid.backends.onnximport.mxnet.MxnetSymbol.Node;
import io.nereid.backends.onnximport.onnx.ConstantTensor;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;

/**
 * Converts an MXNet graph to a Caffe2 net, which {@code Caffe2Converter} then converts to ONNX: the two formats have
 * mostly the same operators, so one set of conversions to ONNX serves both. Confined to one load.
 */
final class MxnetConverter {
    /** Operators without parameters that Caffe2 has, too, by their names in MXNet. */
    private static final Map<String, String> SAME = Map.ofEntries(
            Map.entry("relu", "Relu"),
            Map.entry("sigmoid", "Sigmoid"),
            Map.entry("tanh", "Tanh"),
            Map.entry("softsign", "Softsign"),
            Map.entry("exp", "Exp"),
            Map.entry("log", "Log"),
            Map.entry("sqrt", "Sqrt"),
            Map.entry("rsqrt", "Rsqrt"),
            Map.entry("square", "Sqr"),
            Map.entry("abs", "Abs"),
            Map.entry("negative", "Negative"),
            Map.entry("reciprocal", "Reciprocal"),
            Map.entry("floor", "Floor"),
            Map.entry("ceil", "Ceil"),
            Map.entry("sin", "Sin"),
            Map.entry("cos", "Cos"),
            Map.entry("identity", "Copy"),
            Map.entry("_copy", "Copy"),
            Map.entry("BlockGrad", "Copy"),
            Map.entry("Dropout", "Copy"),
            Map.entry("LinearRegressionOutput", "Copy"),
            Map.entry("MAERegressionOutput", "Copy"),
            Map.entry("LogisticRegressionOutput", "Sigmoid"),
            Map.entry("elemwise_add", "Add"),
            Map.entry("_plus", "Add"),
            Map.entry("_Plus", "Add"),
            Map.entry("_add", "Add"),
            Map.entry("elemwise_sub", "Sub"),
            Map.entry("_minus", "Sub"),
            Map.entry("elemwise_mul", "Mul"),
            Map.entry("_mul", "Mul"),
            Map.entry("elemwise_div", "Div"),
            Map.entry("_div", "Div"),
            Map.entry("broadcast_add", "Add"),
            Map.entry("broadcast_plus", "Add"),
            Map.entry("broadcast_sub", "Sub"),
            Map.entry("broadcast_minus", "Sub"),
            Map.entry("broadcast_mul", "Mul"),
            Map.entry("broadcast_div", "Div"),
            Map.entry("add_n", "Sum"),
            Map.entry("ElementWiseSum", "Sum"),
            Map.entry("Flatten", "Flatten"),
            Map.entry("flatten", "Flatten"));

    private static final Map<String, String> SCALAR = Map.of(
            "_plus_scalar",
            "Add",
            "_minus_scalar",
            "Sub",
            "_mul_scalar",
            "Mul",
            "_div_scalar",
            "Div",
            "_power_scalar",
            "Pow");

    private static final Map<String, String> REDUCE =
            Map.of("mean", "ReduceMean", "sum", "ReduceSum", "max", "ReduceMax", "min", "ReduceMin");

    /** Operators whose inputs after the first are for training only. */
    private static final Set<String> FIRST_ONLY =
            Set.of("LinearRegressionOutput", "MAERegressionOutput", "LogisticRegressionOutput", "Dropout");

    private final MxnetSymbol symbol;
    private final Map<String, ConstantTensor> weights;
    private final List<Operator> init = new ArrayList<>();
    private final List<Operator> net = new ArrayList<>();
    private final Set<String> unknown = new TreeSet<>();

    MxnetConverter(MxnetSymbol symbol, Map<String, ConstantTensor> weights) {
        this.symbol = symbol;
        this.weights = weights;
    }

    /** Converts the weights and the needed nodes to the operators in {@link #init} and {@link #net}. */
    private void translate() {
        Set<Integer> needed = new HashSet<>();
        symbol.heads().forEach(h -> needed.add(h.node()));
        for (int i = symbol.nodes().size() - 1; i >= 0; i--) {
            Node node = symbol.nodes().get(i);
            if (needed.contains(i)) {
                node.inputs().stream().limit(used(node)).forEach(e -> needed.add(e.node()));
            }
        }
        weights.forEach((name, array) -> init.add(array(name, array)));
        for (int i = 0; i < symbol.nodes().size(); i++) {
            Node node = symbol.nodes().get(i);
            if (needed.contains(i) && !node.given()) {
                new Step(node).run();
            }
        }
    }

    private static long used(Node node) {
        boolean first = FIRST_ONLY.contains(node.op()) || node.op().startsWith("Softmax");
        return first ? 1 : node.inputs().size();
    }

    /** The init net, with the weights; to be called after {@link #net()}. */
    NetDef init() {
        return new NetDef("", List.copyOf(init), List.of(), List.of());
    }

    /** Converts the graph and returns the net; to be called once, before {@link #init()}. */
    NetDef net() {
        translate();
        if (!unknown.isEmpty()) {
            throw ServingException.invalidArgument(
                    "the graph has " + (unknown.size() == 1 ? "an operator" : "operators")
                            + " that cannot be converted: " + String.join(", ", unknown),
                    "export the model to ONNX with MXNet 1.9 (mxnet.onnx.export_model), and serve model.onnx");
        }
        List<String> inputs = new ArrayList<>();
        for (Node node : symbol.nodes()) {
            if (node.given()) {
                inputs.add(node.name());
            }
        }
        return new NetDef(
                "mxnet",
                List.copyOf(net),
                inputs,
                symbol.heads().stream().map(this::blob).toList());
    }

    private static Operator array(String name, ConstantTensor array) {
        Map<String, Argument> arguments = new HashMap<>();
        arguments.put("shape", new Argument(null, null, null, new float[0], array.dims(), List.of()));
        arguments.put("type", text(array.type().name()));
        arguments.put("values", new Argument(null, null, null, new float[0], new long[0], List.of(array.raw())));
        return new Operator(ConstantOperators.RAW, List.of(), List.of(name), arguments);
    }

    private static Argument text(String s) {
        return new Argument(null, null, s, new float[0], new long[0], List.of());
    }

    /** The name that MXNet gives an output of a node. */
    private String blob(Entry entry) {
        Node node = symbol.nodes().get(entry.node());
        if (node.given()) {
            return node.name();
        }
        boolean several = node.op().equals("SliceChannel") || node.op().equals("split");
        return node.name() + "_output" + (several ? String.valueOf(entry.output()) : entry.output() == 0 ? "" : "!");
    }

    /** The conversion of one node. Confined to one load. */
    private final class Step {
        private final Node node;
        private final List<String> in;
        private final String out;
        private final Map<String, Argument> arguments = new HashMap<>();
        private int temporary;

        Step(Node node) {
            this.node = node;
            this.in = node.inputs().stream()
                    .limit(used(node))
                    .map(MxnetConverter.this::blob)
                    .toList();
            this.out = node.name() + "_output";
        }

        private ServingException rejected(String why) {
            return ServingException.invalidArgument(
                    "operator '" + node.op() + "' ('" + node.name() + "'): " + why, "export the model to ONNX");
        }

        private String setting(String name, String otherwise) {
            return node.settings().getOrDefault(name, otherwise);
        }

        private boolean flag(String name, boolean otherwise) {
            String s = setting(name, otherwise ? "1" : "0").toLowerCase(Locale.ROOT);
            return s.equals("1") || s.equals("true");
        }

        private float number(String name, float otherwise) {
            try {
                return Float.parseFloat(setting(name, String.valueOf(otherwise)));
            } catch (NumberFormatException e) {
                throw rejected("has " + name + " '" + setting(name, "") + "', expected a number");
            }
        }

        private long integer(String name, int otherwise) {
            return (long) number(name, (float) otherwise);
        }

        /** Parses integers such as {@code (3, 3)}, {@code [1L]} or {@code 2}. */
        private long[] tuple(String name) {
            String s = setting(name, "").replaceAll("[()\\[\\] L]", "");
            if (s.isEmpty() || s.equals("None")) {
                return new long[0];
            }
            try {
                return Arrays.stream(s.split(","))
                        .filter(t -> !t.isEmpty())
                        .mapToLong(Long::parseLong)
                        .toArray();
            } catch (NumberFormatException e) {
                throw rejected("has " + name + " '" + setting(name, "") + "', expected whole numbers");
            }
        }

        private Step with(String name, long... values) {
            arguments.put(name, new Argument(null, null, null, new float[0], values, List.of()));
            return this;
        }

        private Step with(String name, long value) {
            arguments.put(name, new Argument(null, value, null, new float[0], new long[0], List.of()));
            return this;
        }

        private Step with(String name, float value) {
            arguments.put(name, new Argument(value, null, null, new float[0], new long[0], List.of()));
            return this;
        }

        /** Adds an operator with the collected arguments, and clears them. */
        private String emit(String type, List<String> inputs, String output) {
            net.add(new Operator(type, inputs, List.of(output), Map.copyOf(arguments)));
            arguments.clear();
            return output;
        }

        private String emit(String type, List<String> inputs) {
            return emit(type, inputs, out + "!" + ++temporary);
        }

        private String constant(float... values) {
            String name = out + "!" + ++temporary;
            init.add(array(
                    name,
                    ConstantTensor.floats(values.length == 1 ? new long[0] : new long[] {values.length}, values)));
            return name;
        }

        private void axes(String name) {
            long[] axes = tuple(name);
            if (axes.length > 0) {
                with("axes", axes);
            }
        }

        void run() {
            String op = node.op();
            String same = SAME.get(op);
            String scalar = SCALAR.get(op);
            String reduce = REDUCE.get(op);
            if (same != null) {
                emit(same, in, out);
            } else if (scalar != null) {
                emit(scalar, List.of(in.get(0), constant(number("scalar", 0))), out);
            } else if (reduce != null) {
                axes("axis");
                emit(reduce, in, with("keepdims", flag("keepdims", false) ? 1L : 0L).out);
            } else {
                special(op);
            }
        }

        private void special(String op) {
            switch (op) {
                case "Convolution" -> convolution("Conv");
                case "Deconvolution" -> convolution("ConvTranspose");
                case "FullyConnected" -> fullyConnected();
                case "Activation" -> activation();
                case "LeakyReLU" -> leaky();
                case "BatchNorm" -> batchNorm();
                case "Pooling" -> pooling();
                case "SoftmaxOutput", "Softmax", "SoftmaxActivation" -> {
                    boolean channels =
                            flag("multi_output", false) || setting("mode", "").equals("channel");
                    if (channels) {
                        throw rejected("is over the channels of an image");
                    }
                    emit("Softmax", in, out);
                }
                case "softmax" ->
                    emit("Softmax", in, with("axis", integer("axis", -1)).with("one_axis", 1L).out);
                case "Concat", "concat" -> emit("Concat", in, with("axis", integer("dim", 1)).out);
                case "SliceChannel", "split" -> split();
                case "clip" -> emit("Clip", in, with("min", number("a_min", 0)).with("max", number("a_max", 0)).out);
                case "LRN" ->
                    emit(
                            "LRN",
                            in,
                            with("size", integer("nsize", 5))
                                    .with("alpha", number("alpha", 1e-4f))
                                    .with("beta", number("beta", 0.75f))
                                    .with("bias", number("knorm", 2))
                                    .out);
                case "Reshape", "reshape" -> {
                    long[] shape = tuple("shape");
                    if (shape.length == 0
                            || flag("reverse", false)
                            || Arrays.stream(shape).anyMatch(d -> d < -1)) {
                        throw rejected("has the shape " + setting("shape", "()"));
                    }
                    emit("Reshape", in, with("shape", shape).out);
                }
                case "transpose" -> {
                    axes("axes");
                    emit("Transpose", in, out);
                }
                case "expand_dims" -> emit("ExpandDims", in, with("dims", new long[] {integer("axis", 0)}).out);
                case "Embedding" -> {
                    arguments.put("to", text("int64"));
                    emit("Gather", List.of(in.get(1), emit("Cast", List.of(in.get(0)))), out);
                }
                case "UpSampling" -> {
                    if (!setting("sample_type", "").equals("nearest") || in.size() != 1) {
                        throw rejected("is not of the nearest element of one image");
                    }
                    float scale = number("scale", 1);
                    emit("ResizeNearest", in, with("height_scale", scale).with("width_scale", scale).out);
                }
                default -> unknown.add("'" + op + "'");
            }
        }

        private void window(int dimensions) {
            String layout = setting("layout", "None");
            if (!layout.equals("None") && !layout.startsWith("NC")) {
                throw rejected("has the layout " + layout + ", expected NCHW");
            }
            long[] strides = tuple("stride");
            long[] pads = tuple("pad");
            if (strides.length > 0) {
                with("strides", strides);
            } else {
                long[] ones = new long[dimensions];
                Arrays.fill(ones, 1);
                with("strides", ones);
            }
            long[] both = Arrays.copyOf(pads.length == 0 ? new long[dimensions] : pads, 2 * dimensions);
            System.arraycopy(both, 0, both, dimensions, dimensions);
            with("pads", both);
        }

        private void convolution(String type) {
            long[] kernel = tuple("kernel");
            window(kernel.length);
            long[] dilations = tuple("dilate");
            if (type.equals("Conv") && dilations.length > 0) {
                with("dilations", dilations);
            }
            if (type.equals("ConvTranspose")) {
                if (tuple("target_shape").length > 0 || Arrays.stream(dilations).anyMatch(d -> d != 1)) {
                    throw rejected("has a target_shape or a dilation");
                }
                long[] adjust = tuple("adj");
                with("adjs", adjust.length == 0 ? new long[kernel.length] : adjust);
            }
            with("kernels", kernel).with("group", integer("num_group", 1));
            boolean bias = !flag("no_bias", type.equals("ConvTranspose"));
            emit(type, in.subList(0, bias ? 3 : 2), out);
        }

        private void fullyConnected() {
            boolean bias = !flag("no_bias", false);
            if (flag("flatten", true)) {
                if (bias) {
                    emit("FC", in.subList(0, 3), out);
                } else {
                    emit("MatMul", in.subList(0, 2), with("trans_b", 1L).out);
                }
                return;
            }
            if (bias) {
                with("trans_b", 1L);
                emit("Add", List.of(emit("BatchMatMul", in.subList(0, 2)), in.get(2)), out);
            } else {
                emit("BatchMatMul", in.subList(0, 2), with("trans_b", 1L).out);
            }
        }

        private void activation() {
            String type = setting("act_type", "");
            String to = switch (type) {
                case "relu" -> "Relu";
                case "sigmoid" -> "Sigmoid";
                case "tanh" -> "Tanh";
                case "softrelu" -> "Softplus";
                case "softsign" -> "Softsign";
                default -> throw rejected("has act_type '" + type + "'");
            };
            emit(to, in, out);
        }

        private void leaky() {
            String type = setting("act_type", "leaky");
            switch (type) {
                case "leaky" -> emit("LeakyRelu", in, with("alpha", number("slope", 0.25f)).out);
                case "elu" -> emit("Elu", in, with("alpha", number("slope", 0.25f)).out);
                case "selu" -> emit("Selu", in, out);
                case "prelu" -> emit("PRelu", in, out);
                default -> throw rejected("has act_type '" + type + "'");
            }
        }

        private void batchNorm() {
            if (integer("axis", 1) != 1) {
                throw rejected("has axis " + integer("axis", 1) + ", expected 1");
            }
            List<String> inputs = new ArrayList<>(in.subList(0, 5));
            ConstantTensor gamma = weights.get(inputs.get(1));
            if (flag("fix_gamma", true) && gamma != null) {
                float[] ones = new float[(int) gamma.count()];
                Arrays.fill(ones, 1);
                String name = out + "!" + ++temporary;
                init.add(array(name, ConstantTensor.floats(gamma.dims(), ones)));
                inputs.set(1, name);
            }
            emit("SpatialBN", inputs, with("is_test", 1L).with("epsilon", number("eps", 1e-3f)).out);
        }

        private void pooling() {
            String type = setting("pool_type", "max");
            if (!type.equals("max") && !type.equals("avg")) {
                throw rejected("has pool_type '" + type + "'");
            }
            String to = type.equals("max") ? "MaxPool" : "AveragePool";
            if (flag("global_pool", false)) {
                emit(to, in, with("global_pooling", 1L).out);
                return;
            }
            long[] kernel = tuple("kernel");
            window(kernel.length);
            String convention = setting("pooling_convention", "valid");
            if (convention.equals("full")) {
                with("legacy_pad", 3L);
            } else if (!convention.equals("valid")) {
                throw rejected("has pooling_convention '" + convention + "'");
            }
            if (type.equals("avg")) {
                with("count_include_pad", flag("count_include_pad", true) ? 1L : 0L);
            }
            emit(to, in, with("kernels", kernel).out);
        }

        private void split() {
            int n = (int) integer("num_outputs", 1);
            if (n < 1 || n > 4096 || flag("squeeze_axis", false)) {
                throw rejected("has " + n + " outputs, or squeeze_axis");
            }
            List<String> outputs = new ArrayList<>();
            for (int i = 0; i < n; i++) {
                outputs.add(out + i);
            }
            with("axis", integer("axis", 1));
            net.add(new Operator("Split", in, outputs, Map.copyOf(arguments)));
        }
    }
}
