// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.caffe2;

import static io.nereid.backends.onnximport.caffe2.OperatorContext.attributes;

import io.nereid.backends.onnximport.onnx.ConstantTensor;
import io.nereid.backends.onnximport.onnx.OnnxGraph.Value;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Conversions of operators on images: convolution, pooling, normalisation, resizing. ONNX has channels second (NCHW)
 * only, so NHWC images are transposed before the operator and back after it. Stateless.
 */
final class ImageOperators {
    private static final int VALID = 1;
    private static final int SAME = 2;
    private static final int CAFFE = 3;

    private ImageOperators() {}

    /**
     * The sliding window of a convolution or pooling.
     *
     * @param kernel its size; empty for global pooling
     * @param strides its strides
     * @param dilations its dilations
     * @param pads the padding: at the beginning of each dimension, then at the end of each; null for SAME padding
     * @param ceil whether the output size is rounded up
     */
    private record Window(long[] kernel, long[] strides, long[] dilations, long @Nullable [] pads, boolean ceil) {
        static Window of(OperatorContext c, int dimensions) {
            boolean global = c.flag("global_pooling");
            long[] kernel = c.integers("kernels");
            if (kernel.length == 0 && c.has("kernel")) {
                kernel = new long[] {c.integer("kernel", 0), c.integer("kernel", 0)};
            }
            if (kernel.length == 0 && c.has("kernel_h") && c.has("kernel_w")) {
                kernel = new long[] {c.integer("kernel_h", 0), c.integer("kernel_w", 0)};
            }
            int n = kernel.length == 0 ? dimensions : kernel.length;
            if (kernel.length == 0 && !global && dimensions == 0) {
                throw c.rejected("has no kernel", "the file is damaged: export it again");
            }
            long[] pads = c.integers("pads");
            if (pads.length == 0 && c.has("pad")) {
                pads = new long[2 * n];
                Arrays.fill(pads, c.integer("pad", 0));
            }
            if (pads.length == 0 && c.has("pad_t")) {
                pads = new long[] {
                    c.integer("pad_t", 0), c.integer("pad_l", 0), c.integer("pad_b", 0), c.integer("pad_r", 0)
                };
            }
            long legacy = c.integer("legacy_pad", 0);
            if (pads.length == 0 || legacy == VALID) {
                pads = new long[2 * n];
            }
            long[] strides = each(c, "stride", n);
            long[] dilations = each(c, "dilation", n);
            if (pads.length != 2 * n || strides.length != n || dilations.length != n) {
                throw c.rejected(
                        "has " + n + " dimensions of kernel, but " + strides.length + " of stride and " + pads.length
                                + " of pad",
                        "the file is damaged: export it again");
            }
            return new Window(
                    global ? new long[0] : kernel, strides, dilations, legacy == SAME ? null : pads, legacy == CAFFE);
        }

        private static long[] each(OperatorContext c, String name, int n) {
            long[] values = c.integers(name + "s");
            if (values.length > 0) {
                return values;
            }
            values = new long[n];
            Arrays.fill(values, c.integer(name, 1));
            if (n == 2 && c.has(name + "_h") && c.has(name + "_w")) {
                return new long[] {c.integer(name + "_h", 1), c.integer(name + "_w", 1)};
            }
            return values;
        }

        /** The window as ONNX attributes. */
        Map<String, Object> toAttributes() {
            return attributes(
                    "kernel_shape",
                    kernel.length == 0 ? null : kernel,
                    "strides",
                    strides,
                    "pads",
                    pads,
                    "auto_pad",
                    pads == null ? "SAME_UPPER" : null);
        }
    }

    /** The first input, transposed to NCHW if necessary. */
    private static Value image(OperatorContext c) {
        return c.channelsLast() ? channelsSecond(c, c.in(0)) : c.in(0);
    }

    private static Value channelsSecond(OperatorContext c, Value x) {
        return c.node("Transpose", List.of(x), attributes("perm", order(c, x, true)), x.rank());
    }

    /** The result, transposed back to NHWC if necessary. */
    private static Value back(OperatorContext c, Value y) {
        if (!c.channelsLast()) {
            return y;
        }
        Value ranked = new Value(y.name(), y.type(), Math.max(y.rank(), c.in(0).rank()), null);
        return c.node("Transpose", List.of(ranked), attributes("perm", order(c, ranked, false)), ranked.rank());
    }

    private static long[] order(OperatorContext c, Value x, boolean second) {
        int rank = c.in(0).rank() < 0 && x.rank() < 0
                ? 4
                : Math.max(x.rank(), c.in(0).rank());
        return order(rank, second);
    }

    private static long[] order(int rank, boolean second) {
        long[] perm = new long[rank];
        for (int i = 1; i < rank; i++) {
            perm[i] = second ? (i == 1 ? rank - 1 : i - 1) : (i == rank - 1 ? 1 : i + 1);
        }
        return perm;
    }

    private static Value filter(OperatorContext c) {
        return c.channelsLast() ? channelsSecond(c, c.in(1)) : c.in(1);
    }

    private static List<Value> filtered(OperatorContext c) {
        List<Value> in = new ArrayList<>(List.of(image(c), filter(c)));
        if (c.in().size() > 2) {
            in.add(c.in(2));
        }
        return in;
    }

    static List<Value> conv(OperatorContext c) {
        Window w = Window.of(c, c.in(1).rank() - 2);
        Map<String, Object> a = w.toAttributes();
        a.put("dilations", w.dilations);
        a.put("group", c.integer("group", 1));
        return List.of(back(c, c.node("Conv", filtered(c), a, c.in(1).rank())));
    }

    static List<Value> convTranspose(OperatorContext c) {
        Window w = Window.of(c, c.in(1).rank() - 2);
        if (w.pads == null) {
            throw c.rejected("has legacy_pad 2", "export the model to ONNX");
        }
        Map<String, Object> a = w.toAttributes();
        a.put("group", c.integer("group", 1));
        long[] adjust = c.integers("adjs");
        if (adjust.length == 0) {
            adjust = new long[w.strides.length];
            Arrays.fill(adjust, c.integer("adj", 0));
            if (c.has("adj_h") && c.has("adj_w")) {
                adjust = new long[] {c.integer("adj_h", 0), c.integer("adj_w", 0)};
            }
        }
        a.put("output_padding", adjust);
        return List.of(back(c, c.node("ConvTranspose", filtered(c), a, c.in(1).rank())));
    }

    static List<Value> maxPool(OperatorContext c) {
        return pool(c, "MaxPool");
    }

    static List<Value> averagePool(OperatorContext c) {
        return pool(c, "AveragePool");
    }

    private static List<Value> pool(OperatorContext c, String type) {
        Value x = image(c);
        if (c.flag("global_pooling")) {
            return List.of(back(c, c.node("Global" + type, List.of(x), Map.of(), x.rank())));
        }
        Window w = Window.of(c, 0);
        Map<String, Object> a = w.toAttributes();
        if (Arrays.stream(w.dilations).anyMatch(d -> d != 1)) {
            if (type.equals("AveragePool")) {
                throw c.rejected("has a dilation", "export the model to ONNX");
            }
            a.put("dilations", w.dilations);
        }
        a.put("ceil_mode", w.ceil ? 1L : 0L);
        if (type.equals("AveragePool")) {
            a.put("count_include_pad", c.integer("count_include_pad", 0));
        }
        return List.of(back(c, c.node(type, List.of(x), a, w.kernel.length + 2)));
    }

    static List<Value> spatialBn(OperatorContext c) {
        if (!c.flag("is_test")) {
            throw c.rejected("is for training (is_test is not set)", "export the net for inference");
        }
        List<Value> in = List.of(image(c), c.in(1), c.in(2), c.in(3), c.in(4));
        Map<String, Object> a = attributes("epsilon", c.number("epsilon", 1e-5f));
        return List.of(back(c, c.node("BatchNormalization", in, a, c.in(0).rank())));
    }

    static List<Value> instanceNorm(OperatorContext c) {
        List<Value> in = List.of(image(c), c.in(1), c.in(2));
        Map<String, Object> a = attributes("epsilon", c.number("epsilon", 1e-5f));
        return List.of(back(c, c.node("InstanceNormalization", in, a, c.in(0).rank())));
    }

    static List<Value> lrn(OperatorContext c) {
        Map<String, Object> a = attributes(
                "size",
                c.integer("size", 0),
                "alpha",
                c.number("alpha", 0),
                "beta",
                c.number("beta", 0),
                "bias",
                c.number("bias", 1));
        return List.of(back(c, c.node("LRN", List.of(image(c)), a, c.in(0).rank())));
    }

    static List<Value> resizeNearest(OperatorContext c) {
        return resize(c, c.number("height_scale", 1), c.number("width_scale", 1), true);
    }

    static List<Value> upsampleBilinear(OperatorContext c) {
        return resize(c, c.number("height_scale", 1), c.number("width_scale", 1), false);
    }

    private static List<Value> resize(OperatorContext c, float height, float width, boolean nearest) {
        if (c.in().size() > 1) {
            throw c.rejected("computes its size", "export the model to ONNX");
        }
        Value scales = c.graph().constant("scales", ConstantTensor.floats(new long[] {4}, 1, 1, height, width));
        Value roi = c.graph().constant("roi", ConstantTensor.floats(new long[] {0}));
        Map<String, Object> a = nearest
                ? attributes("mode", "nearest", "nearest_mode", "floor", "coordinate_transformation_mode", "asymmetric")
                : attributes("mode", "linear", "coordinate_transformation_mode", "align_corners");
        return List.of(back(c, c.node("Resize", List.of(image(c), roi, scales), a, 4)));
    }

    static List<Value> padImage(OperatorContext c) {
        String mode = c.text("mode", "constant");
        long all = c.integer("pad", 0);
        long[] given = c.integers("pads");
        long[] p = given.length == 4
                ? given
                : new long[] {
                    c.integer("pad_t", all), c.integer("pad_l", all), c.integer("pad_b", all), c.integer("pad_r", all)
                };
        Value pads = c.graph().longs(0, 0, p[0], p[1], 0, 0, p[2], p[3]);
        List<Value> in = List.of(image(c), pads, c.graph().scalar(c.number("value", 0)));
        return List.of(back(c, c.node("Pad", in, attributes("mode", mode), 4)));
    }

    static List<Value> toChannelsLast(OperatorContext c) {
        int rank = c.in(0).rank() < 0 ? 4 : c.in(0).rank();
        return List.of(c.node("Transpose", c.in(), attributes("perm", order(rank, false)), rank));
    }

    static List<Value> toChannelsSecond(OperatorContext c) {
        int rank = c.in(0).rank() < 0 ? 4 : c.in(0).rank();
        return List.of(c.node("Transpose", c.in(), attributes("perm", order(rank, true)), rank));
    }
}
