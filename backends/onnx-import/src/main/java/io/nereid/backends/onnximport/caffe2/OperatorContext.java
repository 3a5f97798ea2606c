// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.caffe2;

import io.nereid.backends.onnximport.caffe2.NetDef.Argument;
import io.nereid.backends.onnximport.caffe2.NetDef.Operator;
import io.nereid.backends.onnximport.onnx.ConstantTensor;
import io.nereid.backends.onnximport.onnx.OnnxGraph;
import io.nereid.backends.onnximport.onnx.OnnxGraph.Value;
import io.nereid.base.ServingException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The context in which a Caffe2 operator is converted: its arguments (with Caffe2's defaults), the graph values of its
 * inputs, and the graph that the ONNX nodes are added to. Confined to one thread.
 *
 * @param operator the operator
 * @param in the graph values of its inputs
 * @param graph the graph to add nodes to
 */
record OperatorContext(Operator operator, List<Value> in, OnnxGraph graph) {
    /** An exception that names the operator. */
    ServingException rejected(String why, String remedy) {
        return ServingException.invalidArgument(
                "operator '" + operator.type() + "'"
                        + (operator.outputs().isEmpty()
                                ? ""
                                : " (output '" + operator.outputs().get(0) + "')")
                        + ": " + why,
                remedy);
    }

    Value in(int index) {
        if (index >= in.size()) {
            throw rejected(
                    "has " + in.size() + " inputs, expected at least " + (index + 1),
                    "the file is damaged: export it again");
        }
        return in.get(index);
    }

    boolean has(String name) {
        return operator.arguments().containsKey(name);
    }

    long integer(String name, long otherwise) {
        Argument a = operator.arguments().get(name);
        if (a == null) {
            return otherwise;
        }
        Long i = a.i();
        Float f = a.f();
        return i != null ? i : f != null ? f.longValue() : otherwise;
    }

    int axis(String name, long otherwise) {
        long axis = integer(name, otherwise);
        if (axis < -16 || axis > 16) {
            throw rejected(
                    "has " + name + " " + axis + ", expected a dimension", "the file is damaged: export it again");
        }
        return (int) axis;
    }

    boolean flag(String name) {
        return integer(name, 0) != 0;
    }

    float number(String name, float otherwise) {
        Argument a = operator.arguments().get(name);
        if (a == null) {
            return otherwise;
        }
        Long i = a.i();
        Float f = a.f();
        return f != null ? f : i != null ? i : otherwise;
    }

    String text(String name, String otherwise) {
        Argument a = operator.arguments().get(name);
        String s = a == null ? null : a.s();
        return s == null ? otherwise : s;
    }

    /** The integers of an argument; empty when the operator does not have it. */
    long[] integers(String name) {
        Argument a = operator.arguments().get(name);
        return a == null ? new long[0] : a.ints().clone();
    }

    /** Whether images are NHWC, with the channels last. */
    boolean channelsLast() {
        String order = text("order", "NCHW");
        if (!order.equals("NCHW") && !order.equals("NHWC")) {
            throw rejected("has order '" + order + "', expected NCHW or NHWC", "export the model to ONNX");
        }
        return order.equals("NHWC");
    }

    /** The rank of a value; fails when it is unknown, for conversions that depend on it. */
    int rank(Value value) {
        if (value.rank() < 0) {
            throw rejected(
                    "cannot be converted without the number of dimensions of '"
                            + operator.inputs().get(Math.max(0, in.indexOf(value))) + "'",
                    "write the shapes of the inputs into config.pbtxt, or export the model to ONNX");
        }
        return value.rank();
    }

    /** The value of an input that must be a constant. */
    ConstantTensor constant(int index) {
        ConstantTensor constant = in(index).constant();
        if (constant == null) {
            throw rejected(
                    "has '" + operator.inputs().get(index) + "' computed by an operator, expected a constant",
                    "export the model to ONNX");
        }
        return constant;
    }

    /** Adds a node with the first input, whose output has that input's type and rank. */
    Value like(String type, Map<String, Object> attributes) {
        return graph.node(type, List.of(in(0)), attributes, in(0).type(), in(0).rank());
    }

    /** Adds a node whose output has the first input's type. */
    Value node(String type, List<Value> inputs, Map<String, Object> attributes, int rank) {
        return graph.node(type, inputs, attributes, inputs.get(0).type(), rank);
    }

    /** Makes a map of attributes from names and values in turn; null values are left out. */
    static Map<String, Object> attributes(@Nullable Object... namesAndValues) {
        Map<String, Object> attributes = new LinkedHashMap<>();
        for (int i = 0; i < namesAndValues.length; i += 2) {
            Object value = namesAndValues[i + 1];
            if (value != null) {
                attributes.put(String.valueOf(namesAndValues[i]), value);
            }
        }
        return attributes;
    }
}
