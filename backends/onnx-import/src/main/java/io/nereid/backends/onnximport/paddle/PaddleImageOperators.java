// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.paddle;

import io.nereid.backends.onnximport.onnx.ConstantTensor;
import io.nereid.backends.onnximport.onnx.ElementType;
import io.nereid.backends.onnximport.onnx.OnnxGraph.Value;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.LongStream;

/** Conversions of PaddlePaddle's image and normalisation operators, with channels first (NCHW). Stateless. */
final class PaddleImageOperators {
    private PaddleImageOperators() {}

    static void addTo(PaddleOperators rules) {
        rules.named("conv2d", "Output", c -> conv(c, "Conv"));
        rules.named("depthwise_conv2d", "Output", c -> conv(c, "Conv"));
        rules.named("conv3d", "Output", c -> conv(c, "Conv"));
        rules.named("conv2d_transpose", "Output", c -> conv(c, "ConvTranspose"));
        rules.named("depthwise_conv2d_transpose", "Output", c -> conv(c, "ConvTranspose"));
        rules.out("pool2d", PaddleImageOperators::pool);
        rules.named("batch_norm", "Y", PaddleImageOperators::batchNorm);
        rules.named("layer_norm", "Y", PaddleImageOperators::layerNorm);
        rules.named(
                "instance_norm",
                "Y",
                c -> c.node(
                        "InstanceNormalization",
                        List.of(c.in("X"), c.in("Scale"), c.in("Bias")),
                        Map.of("epsilon", c.real("epsilon", 1e-5f)),
                        c.in("X").rank()));
        rules.out("prelu", PaddleImageOperators::prelu);
        rules.out("nearest_interp_v2", c -> resized(c, "nearest"));
        rules.out("bilinear_interp_v2", c -> resized(c, "linear"));
        rules.out("pad3d", c -> pad(c, 3));
        rules.out("pad2d", c -> pad(c, 2));
        rules.out("pixel_shuffle", c -> {
            first(c, "data_format");
            return c.node(
                    "DepthToSpace",
                    List.of(c.in("X")),
                    Map.of("blocksize", c.whole("upscale_factor", 1), "mode", "CRD"),
                    4);
        });
    }

    /** Rejects images whose channels are last (NHWC). */
    private static void first(PaddleOperatorContext c, String attribute) {
        String layout = c.text(attribute, "NCHW");
        if (layout.endsWith("C") && layout.length() > 2) {
            throw c.rejected("has " + attribute + " '" + layout + "' (expected: channels first)");
        }
    }

    /**
     * Converts the padding: PaddlePaddle has begin and end of each dimension in turn, ONNX all begins, then all ends.
     */
    private static void padding(PaddleOperatorContext c, Map<String, Object> settings, int dimensions) {
        String algorithm = c.text("padding_algorithm", "EXPLICIT");
        long[] given = c.wholes("paddings");
        if (algorithm.equals("SAME")) {
            settings.put("auto_pad", "SAME_UPPER");
        } else if (!algorithm.equals("VALID")) {
            long[] pads = new long[2 * dimensions];
            if (given.length != dimensions && given.length != 2 * dimensions) {
                throw c.rejected("has " + given.length + " paddings for " + dimensions + " dimensions");
            }
            for (int i = 0; i < dimensions; i++) {
                pads[i] = given.length == dimensions ? given[i] : given[2 * i];
                pads[dimensions + i] = given.length == dimensions ? given[i] : given[2 * i + 1];
            }
            settings.put("pads", pads);
        }
    }

    private static Value conv(PaddleOperatorContext c, String onnx) {
        first(c, "data_format");
        Value x = c.in("Input");
        int dimensions = c.rank(x) - 2;
        Map<String, Object> settings = new HashMap<>();
        settings.put("strides", c.wholes("strides"));
        settings.put("dilations", c.wholes("dilations"));
        settings.put("group", Math.max(1, c.whole("groups", 1)));
        padding(c, settings, dimensions);
        if (onnx.equals("ConvTranspose")) {
            if (c.wholes("output_size").length > 0
                    || c.text("padding_algorithm", "EXPLICIT").equals("SAME")) {
                throw c.rejected("has an output_size or a padding that depends on it");
            }
            if (c.wholes("output_padding").length > 0) {
                settings.put("output_padding", c.wholes("output_padding"));
            }
        }
        List<Value> in = new ArrayList<>(List.of(x, c.in("Filter")));
        if (c.has("Bias")) {
            in.add(c.in("Bias"));
        }
        return c.node(onnx, in, settings, x.rank());
    }

    private static Value pool(PaddleOperatorContext c) {
        first(c, "data_format");
        Value x = c.in("X");
        boolean most = c.text("pooling_type", "max").equals("max");
        long[] size = c.wholes("ksize");
        boolean adaptive = c.flag("adaptive", false);
        if (c.flag("global_pooling", false) || (adaptive && Arrays.stream(size).allMatch(s -> s == 1))) {
            return c.node(most ? "GlobalMaxPool" : "GlobalAveragePool", x);
        }
        if (adaptive) {
            throw c.rejected("is adaptive to " + Arrays.toString(size) + " (expected: 1 by 1)");
        }
        Map<String, Object> settings = new HashMap<>();
        settings.put("kernel_shape", size);
        settings.put("strides", c.wholes("strides"));
        settings.put("ceil_mode", c.flag("ceil_mode", false) ? 1L : 0L);
        padding(c, settings, size.length);
        if (!most) {
            settings.put("count_include_pad", c.flag("exclusive", true) ? 0L : 1L);
        }
        return c.node(most ? "MaxPool" : "AveragePool", List.of(x), settings, x.rank());
    }

    private static Value batchNorm(PaddleOperatorContext c) {
        first(c, "data_layout");
        if (!c.flag("is_test", false) && !c.flag("use_global_stats", false)) {
            throw c.rejected("is in training mode (is_test is not set)");
        }
        return c.node(
                "BatchNormalization",
                List.of(c.in("X"), c.in("Scale"), c.in("Bias"), c.in("Mean"), c.in("Variance")),
                Map.of("epsilon", c.real("epsilon", 1e-5f)),
                c.in("X").rank());
    }

    /**
     * Layer normalisation over all dimensions from one on. Opset 12 does not have it, so it is built from its
     * definition.
     */
    private static Value layerNorm(PaddleOperatorContext c) {
        Value x = c.in("X");
        int rank = c.rank(x);
        int from = c.axis(c.whole("begin_norm_axis", 1), rank);
        Map<String, Object> behind = Map.of("axes", LongStream.range(from, rank).toArray(), "keepdims", 1L);
        Value off = c.node("Sub", x, c.node("ReduceMean", List.of(x), behind, rank));
        Value variance = c.node("ReduceMean", List.of(c.node("Mul", off, off)), behind, rank);
        Value deviation = c.node("Sqrt", c.node("Add", variance, c.number(c.real("epsilon", 1e-5f), x)));
        Value y = c.node("Div", off, deviation);
        if (rank - from > 1 && (c.has("Scale") || c.has("Bias"))) {
            throw c.rejected("has weights over " + (rank - from) + " dimensions (expected: 1)");
        }
        if (c.has("Scale")) {
            y = c.node("Mul", y, c.in("Scale"));
        }
        return c.has("Bias") ? c.node("Add", y, c.in("Bias")) : y;
    }

    private static Value prelu(PaddleOperatorContext c) {
        Value x = c.in("X");
        Value slope = c.in("Alpha");
        String mode = c.text("mode", "all");
        if (mode.equals("channel")) {
            first(c, "data_format");
            long[] shape = new long[c.rank(x) - 1];
            Arrays.fill(shape, 1);
            shape[0] = -1;
            slope = c.reshape(slope, shape);
        } else if (!mode.equals("all")) {
            throw c.rejected("has mode '" + mode + "' (expected: all or channel)");
        }
        return c.node("PRelu", x, slope);
    }

    private static Value resized(PaddleOperatorContext c, String mode) {
        first(c, "data_layout");
        c.fixed("OutSize", "SizeTensor", "Scale");
        Value x = c.in("X");
        boolean corners = c.flag("align_corners", false);
        float[] scale = c.reals("scale");
        long[] size = {c.whole("out_h", -1), c.whole("out_w", -1)};
        String places = corners
                ? "align_corners"
                : mode.equals("linear") && c.whole("align_mode", 1) == 0 ? "half_pixel" : "asymmetric";
        Map<String, Object> settings = new HashMap<>(Map.of("mode", mode, "coordinate_transformation_mode", places));
        if (mode.equals("nearest")) {
            settings.put("nearest_mode", corners ? "round_prefer_ceil" : "floor");
        }
        Value none = c.graph().constant("none", ConstantTensor.floats(new long[] {0}));
        List<Value> in = new ArrayList<>(List.of(x, none));
        if (scale.length > 0 && scale[0] > 0) {
            float wide = scale.length > 1 ? scale[1] : scale[0];
            in.add(c.graph().constant("scales", ConstantTensor.floats(new long[] {4}, 1, 1, scale[0], wide)));
        } else if (size[0] > 0 && size[1] > 0) {
            // ONNX wants the sizes of all dimensions: the first two (batch and channels) stay those of the input.
            Value shape = c.graph().node("Shape", List.of(x), Map.of(), ElementType.INT64, 1);
            List<Value> cut = List.of(
                    shape, c.graph().longs(0), c.graph().longs(2), c.graph().longs(0));
            Value kept = c.node("Slice", cut, Map.of(), 1);
            in.add(none);
            in.add(c.node("Concat", List.of(kept, c.graph().longs(size)), Map.of("axis", 0L), 1));
        } else {
            throw c.rejected("has neither a scale nor a size");
        }
        return c.node("Resize", in, settings, x.rank());
    }

    private static Value pad(PaddleOperatorContext c, int dimensions) {
        first(c, "data_format");
        c.fixed("Paddings");
        Value x = c.in("X");
        String mode = c.text("mode", "constant");
        Map<String, String> known =
                Map.of("constant", "constant", "reflect", "reflect", "replicate", "edge", "edge", "edge");
        long[] given = c.wholes("paddings");
        if (!known.containsKey(mode) || given.length != 2 * dimensions || c.rank(x) != dimensions + 2) {
            throw c.rejected(
                    "has mode '" + mode + "' and " + given.length + " paddings for " + x.rank() + " dimensions");
        }
        long[] pads = new long[2 * (dimensions + 2)];
        for (int i = 0; i < dimensions; i++) {
            // pad3d lists the dimensions from the last to the first: left, right, top, bottom, front, back.
            int from = dimensions == 3 ? 2 * (dimensions - 1 - i) : 2 * i;
            pads[2 + i] = given[from];
            pads[dimensions + 4 + i] = given[from + 1];
        }
        Value value = c.number(c.real("value", c.real("pad_value", 0)), x);
        return c.node(
                "Pad",
                mode.equals("constant")
                        ? List.of(x, c.graph().longs(pads), value)
                        : List.of(x, c.graph().longs(pads)),
                Map.of("mode", known.getOrDefault(mode, mode)),
                x.rank());
    }
}
