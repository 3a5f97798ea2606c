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
 * One operator on its way into the graph, with its settings under the defaults of Caffe2. Confined to one thread.
 *
 * @param operator the operator
 * @param in the values of its inputs
 * @param graph where it goes
 */
record OperatorContext(Operator operator, List<Value> in, OnnxGraph graph) {
    /** A refusal that names the operator. */
    ServingException refused(String why, String remedy) {
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
            throw refused(
                    "has " + in.size() + " inputs, expected at least " + (index + 1),
                    "the file is damaged: export it anew");
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
            throw refused("has " + name + " " + axis + ", expected a dimension", "the file is damaged: export it anew");
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

    /** The whole numbers of a setting; none when it is not there. */
    long[] integers(String name) {
        Argument a = operator.arguments().get(name);
        return a == null ? new long[0] : a.ints().clone();
    }

    /** Whether images have their channels last. */
    boolean channelsLast() {
        String order = text("order", "NCHW");
        if (!order.equals("NCHW") && !order.equals("NHWC")) {
            throw refused("has order '" + order + "', expected NCHW or NHWC", "export the model to ONNX");
        }
        return order.equals("NHWC");
    }

    /** The rank of a value, where the conversion depends on it. */
    int rank(Value value) {
        if (value.rank() < 0) {
            throw refused(
                    "cannot be converted without the number of dimensions of '"
                            + operator.inputs().get(Math.max(0, in.indexOf(value))) + "'",
                    "write the shapes of the inputs into config.pbtxt, or export the model to ONNX");
        }
        return value.rank();
    }

    /** The value of an input that must be known beforehand. */
    ConstantTensor constant(int index) {
        ConstantTensor constant = in(index).constant();
        if (constant == null) {
            throw refused(
                    "takes '" + operator.inputs().get(index) + "' from a computation, expected a constant",
                    "export the model to ONNX");
        }
        return constant;
    }

    /** A node of the first input's type and rank. */
    Value like(String type, Map<String, Object> attributes) {
        return graph.node(type, List.of(in(0)), attributes, in(0).type(), in(0).rank());
    }

    /** A node of the first input's type. */
    Value node(String type, List<Value> inputs, Map<String, Object> attributes, int rank) {
        return graph.node(type, inputs, attributes, inputs.get(0).type(), rank);
    }

    /** Attributes by name. */
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
