// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.paddle;

import io.nereid.backends.onnximport.onnx.ElementType;
import io.nereid.backends.onnximport.onnx.OnnxGraph;
import io.nereid.backends.onnximport.onnx.OnnxGraph.Value;
import io.nereid.backends.onnximport.paddle.PaddleProgram.Operator;
import io.nereid.backends.onnximport.paddle.PaddleProgram.Variable;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The context in which a PaddlePaddle operator is converted: its attributes, the graph values of the variables so far,
 * and the graph that the ONNX nodes are added to. Confined to one thread.
 *
 * @param operator the operator
 * @param values the graph values so far, by variable
 * @param variables the program's variables
 * @param graph the graph to add nodes to
 */
record PaddleOperatorContext(
        Operator operator, Map<String, Value> values, Map<String, Variable> variables, OnnxGraph graph) {
    static final String EXPORT = "export the model to ONNX with paddle2onnx, and serve model.onnx";

    ServingException rejected(String why) {
        return ServingException.invalidArgument("operator '" + operator.type() + "' " + why, EXPORT);
    }

    /** The values of an input parameter; empty when the operator does not have it. */
    List<Value> all(String parameter) {
        List<Value> all = new ArrayList<>();
        for (String name : operator.inputs().getOrDefault(parameter, List.of())) {
            Value value = values.get(name);
            if (value == null) {
                throw rejected("reads '" + name + "', which no operator writes before");
            }
            all.add(value);
        }
        return all;
    }

    boolean has(String parameter) {
        return !operator.inputs().getOrDefault(parameter, List.of()).isEmpty();
    }

    Value in(String parameter) {
        List<Value> all = all(parameter);
        if (all.size() != 1) {
            throw rejected("has " + all.size() + " inputs '" + parameter + "' (expected: 1)");
        }
        return all.get(0);
    }

    /** Rejects parameters that are computed by other operators: only attributes can be converted. */
    void fixed(String... parameters) {
        for (String parameter : parameters) {
            if (has(parameter)) {
                throw rejected("has '" + parameter + "' computed by an operator");
            }
        }
    }

    /** The variable that the program declares for an output. */
    private @Nullable Variable out(String parameter) {
        List<String> names = operator.outputs().getOrDefault(parameter, List.of());
        return names.isEmpty() ? null : variables.get(names.get(0));
    }

    int rank(String parameter) {
        Variable v = out(parameter);
        return v == null ? -1 : v.dims().length;
    }

    int rank(Value value) {
        if (value.rank() < 0) {
            throw rejected("has an input with an unknown number of dimensions");
        }
        return value.rank();
    }

    /** Converts a negative axis, which counts from the end, to a positive one. */
    int axis(long axis, int rank) {
        if (axis < -rank || axis >= rank) {
            throw rejected("has axis " + axis + " of " + rank + " dimensions");
        }
        return (int) (axis < 0 ? axis + rank : axis);
    }

    long whole(String name, long otherwise) {
        Object value = operator.attributes().get(name);
        return value instanceof Long l ? l : value instanceof Float f ? f.longValue() : otherwise;
    }

    float real(String name, float otherwise) {
        Object value = operator.attributes().get(name);
        return value instanceof Float f ? f : value instanceof Long l ? l : otherwise;
    }

    boolean flag(String name, boolean otherwise) {
        Object value = operator.attributes().get(name);
        return value instanceof Boolean b ? b : value instanceof Long l ? l != 0 : otherwise;
    }

    String text(String name, String otherwise) {
        return operator.attributes().get(name) instanceof String s ? s : otherwise;
    }

    long[] wholes(String name) {
        Object value = operator.attributes().get(name);
        return value instanceof long[] l ? l.clone() : value instanceof Long l ? new long[] {l} : new long[0];
    }

    float[] reals(String name) {
        return operator.attributes().get(name) instanceof float[] f ? f : new float[0];
    }

    ElementType type(String name, ElementType otherwise) {
        long number = whole(name, -1);
        if (number < 0) {
            return otherwise;
        }
        ElementType type = ElementType.ofPaddle(number);
        if (type == null) {
            throw rejected("has elements of type " + number);
        }
        return type;
    }

    Value node(String type, List<Value> in, Map<String, Object> attributes, int rank) {
        return graph.node(type, in, attributes, in.get(0).type(), rank);
    }

    Value node(String type, Value... in) {
        return graph.node(type, List.of(in), Map.of(), in[0].type(), in[0].rank());
    }

    /** A scalar constant of another value's type. */
    Value number(double number, Value like) {
        Value made = graph.scalar((float) number);
        return like.type() == ElementType.FLOAT ? made : cast(made, like.type());
    }

    Value cast(Value value, ElementType type) {
        return value.type() == type
                ? value
                : graph.node("Cast", List.of(value), Map.of("to", (long) type.onnx()), type, value.rank());
    }

    Value reshape(Value value, long... shape) {
        return node("Reshape", List.of(value, graph.longs(shape)), Map.of(), shape.length);
    }

    Value transpose(Value value, long... order) {
        return node("Transpose", List.of(value), Map.of("perm", order), order.length);
    }
}
