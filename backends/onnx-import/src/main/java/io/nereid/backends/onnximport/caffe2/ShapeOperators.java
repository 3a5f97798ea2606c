// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.caffe2;

import static io.nereid.backends.onnximport.caffe2.OperatorContext.attributes;

import io.nereid.backends.onnximport.onnx.ConstantTensor;
import io.nereid.backends.onnximport.onnx.ElementType;
import io.nereid.backends.onnximport.onnx.OnnxGraph.Value;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;

/** Conversions of operators that reshape, split, concatenate, slice and reduce tensors. Stateless. */
final class ShapeOperators {
    private ShapeOperators() {}

    static List<Value> reshape(OperatorContext c) {
        Value shape;
        if (c.in().size() > 1) {
            ConstantTensor known = c.in(1).constant();
            shape = known != null
                    ? c.graph().longs(known.toLongs())
                    : c.graph().node("Cast", List.of(c.in(1)), attributes("to", 7L), ElementType.INT64, 1);
        } else {
            shape = c.graph().longs(c.integers("shape"));
        }
        ConstantTensor known = shape.constant();
        return List.of(c.node("Reshape", List.of(c.in(0), shape), Map.of(), known == null ? -1 : (int) known.count()));
    }

    static List<Value> transpose(OperatorContext c) {
        long[] axes = c.integers("axes");
        return List.of(c.like("Transpose", attributes("perm", axes.length == 0 ? null : axes)));
    }

    static List<Value> flatten(OperatorContext c) {
        return List.of(c.node("Flatten", List.of(c.in(0)), attributes("axis", (long) c.axis("axis", 1)), 2));
    }

    static List<Value> flattenToVector(OperatorContext c) {
        return List.of(c.node("Reshape", List.of(c.in(0), c.graph().longs(-1)), Map.of(), 1));
    }

    static List<Value> squeeze(OperatorContext c) {
        long[] dims = c.integers("dims");
        int rank = c.in(0).rank();
        return List.of(c.node(
                "Squeeze",
                List.of(c.in(0)),
                attributes("axes", dims),
                rank < 0 ? -1 : Math.max(0, rank - dims.length)));
    }

    static List<Value> expandDims(OperatorContext c) {
        long[] dims = c.integers("dims");
        int rank = c.in(0).rank();
        return List.of(
                c.node("Unsqueeze", List.of(c.in(0)), attributes("axes", dims), rank < 0 ? -1 : rank + dims.length));
    }

    static List<Value> concat(OperatorContext c) {
        boolean added = c.flag("add_axis");
        long axis = axis(c);
        List<Value> parts = new ArrayList<>();
        for (Value v : c.in()) {
            parts.add(
                    added
                            ? c.node(
                                    "Unsqueeze",
                                    List.of(v),
                                    attributes("axes", new long[] {axis}),
                                    v.rank() < 0 ? -1 : v.rank() + 1)
                            : v);
        }
        int rank = parts.stream().mapToInt(Value::rank).max().orElse(-1);
        return List.of(c.node("Concat", parts, attributes("axis", axis), rank));
    }

    /** The dimension to split or concatenate: the argument, else that of the channels. */
    private static long axis(OperatorContext c) {
        return c.axis("axis", c.channelsLast() ? 3 : 1);
    }

    static List<Value> split(OperatorContext c) {
        if (c.flag("add_axis")) {
            throw c.rejected("has add_axis", "export the model to ONNX");
        }
        long[] sizes = c.in().size() > 1 ? c.constant(1).toLongs() : c.integers("split");
        int n = c.operator().outputs().size();
        return c.graph()
                .nodes(
                        "Split",
                        List.of(c.in(0)),
                        attributes("axis", axis(c), "split", sizes.length == 0 ? null : sizes),
                        Collections.nCopies(n, c.in(0).type()),
                        c.in(0).rank());
    }

    static List<Value> slice(OperatorContext c) {
        long[] starts = bounds(c.in().size() > 1 ? c.constant(1).toLongs() : c.integers("starts"));
        long[] ends = bounds(c.in().size() > 2 ? c.constant(2).toLongs() : c.integers("ends"));
        if (starts.length != ends.length) {
            throw c.rejected(
                    "has " + starts.length + " starts and " + ends.length + " ends",
                    "the file is damaged: export it again");
        }
        List<Value> in = List.of(c.in(0), c.graph().longs(starts), c.graph().longs(ends));
        return List.of(c.node("Slice", in, Map.of(), c.in(0).rank()));
    }

    /** Converts slice bounds: in Caffe2, -1 is the end, and -2 the position before the last element. */
    private static long[] bounds(long[] values) {
        for (int i = 0; i < values.length; i++) {
            values[i] = values[i] == -1 ? Long.MAX_VALUE : values[i] < 0 ? values[i] + 1 : values[i];
        }
        return values;
    }

    /** A reduction over the dimensions in {@code axes}. */
    static Caffe2Operators.Conversion reduce(String type) {
        return c -> {
            long[] axes = c.integers("axes");
            boolean keep = c.integer("keepdims", 1) != 0;
            return List.of(reduced(c, type, axes, keep));
        };
    }

    private static Value reduced(OperatorContext c, String type, long[] axes, boolean keep) {
        int rank = c.in(0).rank();
        int left = keep || rank < 0 ? rank : axes.length == 0 ? 0 : Math.max(0, rank - axes.length);
        return c.node(
                type,
                List.of(c.in(0)),
                attributes("axes", axes.length == 0 ? null : axes, "keepdims", keep ? 1L : 0L),
                left);
    }

    /** A reduction over the first or the last dimensions. */
    static Caffe2Operators.Conversion reduceEnd(String type, boolean front) {
        return c -> {
            int n = c.axis("num_reduce_dim", 1);
            if (n < 1 || c.in().size() > 1) {
                throw c.rejected("reduces " + n + " dimensions, or to given lengths", "export the model to ONNX");
            }
            long[] axes = new long[n];
            for (int i = 0; i < n; i++) {
                axes[i] = front ? i : i - n;
            }
            return List.of(reduced(c, type, axes, false));
        };
    }

    static List<Value> sumElements(OperatorContext c) {
        return List.of(reduced(c, c.flag("average") ? "ReduceMean" : "ReduceSum", new long[0], false));
    }

    static Caffe2Operators.Conversion argument(String type) {
        return c -> {
            boolean keep = c.integer("keepdims", 1) != 0;
            int rank = c.in(0).rank();
            return List.of(c.graph()
                    .node(
                            type,
                            List.of(c.in(0)),
                            attributes("axis", (long) c.axis("axis", -1), "keepdims", keep ? 1L : 0L),
                            ElementType.INT64,
                            keep || rank < 0 ? rank : rank - 1));
        };
    }

    static List<Value> topK(OperatorContext c) {
        Value k = c.graph().longs(c.in().size() > 1 ? c.constant(1).toLongs()[0] : c.integer("k", 0));
        return c.graph()
                .nodes(
                        "TopK",
                        List.of(c.in(0), k),
                        attributes("axis", (long) c.axis("axis", -1)),
                        List.of(c.in(0).type(), ElementType.INT64),
                        c.in(0).rank());
    }

    static List<Value> gather(OperatorContext c) {
        Value data = c.in(0);
        Value indices = c.in(1);
        int rank = data.rank() < 0 || indices.rank() < 0 ? -1 : data.rank() + indices.rank() - 1;
        return List.of(c.node("Gather", List.of(data, indices), attributes("axis", (long) c.axis("axis", 0)), rank));
    }

    static List<Value> shape(OperatorContext c) {
        if (c.has("axes")) {
            throw c.rejected("has axes", "export the model to ONNX");
        }
        return List.of(c.graph().node("Shape", List.of(c.in(0)), Map.of(), ElementType.INT64, 1));
    }

    static List<Value> tile(OperatorContext c) {
        long[] repeats = new long[c.rank(c.in(0))];
        java.util.Arrays.fill(repeats, 1);
        int axis = c.axis("axis", 0);
        int at = axis < 0 ? axis + repeats.length : axis;
        if (c.in().size() > 1 || at < 0 || at >= repeats.length) {
            throw c.rejected("has axis " + axis + ", or computes its repeats", "export the model to ONNX");
        }
        repeats[at] = c.integer("tiles", 1);
        return List.of(c.node("Tile", List.of(c.in(0), c.graph().longs(repeats)), Map.of(), repeats.length));
    }

    static List<Value> normalize(OperatorContext c) {
        return List.of(c.like("LpNormalization", attributes("axis", (long) c.axis("axis", -1), "p", 2L)));
    }
}
