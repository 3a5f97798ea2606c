// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.onnx;

import io.nereid.protobuf.ProtobufWriter;
import io.nereid.tensor.Shape;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Builds an ONNX graph with operators of opset 12, and writes it as a model file. Confined to one thread. */
public final class OnnxGraph {
    /** The last opset in which Softmax flattens its input to a matrix, as Caffe2's does, and axes are attributes. */
    private static final int OPSET = 12;

    private static final int IR_VERSION = 7;

    /**
     * A tensor of the graph. Immutable.
     *
     * @param name its name in the graph
     * @param type the type of its elements
     * @param rank the number of its dimensions, -1 when unknown
     * @param constant its value if it is a constant, else null
     */
    public record Value(
            String name,
            ElementType type,
            int rank,
            @Nullable ConstantTensor constant) {}

    private record Node(String type, List<String> inputs, List<String> outputs, Map<String, Object> attributes) {}

    private record Port(
            String name, ElementType type, @Nullable Shape shape) {}

    private final List<Node> nodes = new ArrayList<>();
    private final Map<String, ConstantTensor> constants = new HashMap<>();
    private final List<Port> inputs = new ArrayList<>();
    private final List<Port> outputs = new ArrayList<>();
    private final Map<String, String> renamed = new HashMap<>();
    private final Set<String> taken;
    private int counter;

    /** @param reserved names of inputs and outputs, which clients use and which generated names must not be equal to */
    public OnnxGraph(Set<String> reserved) {
        taken = new HashSet<>(reserved);
    }

    private String fresh(String hint) {
        String name;
        do {
            name = hint + ":" + ++counter;
        } while (!taken.add(name));
        return name;
    }

    public Value input(String name, ElementType type, Shape shape) {
        inputs.add(new Port(name, type, shape));
        return new Value(name, type, shape.rank(), null);
    }

    /** Makes a value an output of the graph, with a name that clients use. */
    public void output(String name, Value value, @Nullable Shape shape) {
        Value own = value;
        // A value that is already an output, an input or a constant cannot be renamed: an Identity node copies it.
        if (renamed.containsKey(value.name())
                || value.constant() != null
                || inputs.stream().anyMatch(p -> p.name().equals(value.name()))) {
            own = node("Identity", List.of(value), Map.of(), value.type(), value.rank());
        }
        renamed.put(own.name(), name);
        outputs.add(new Port(name, value.type(), shape));
    }

    public Value constant(String hint, ConstantTensor constant) {
        return new Value(fresh(hint), constant.type(), constant.dims().length, constant);
    }

    public Value longs(long... values) {
        return constant("ints", ConstantTensor.longs(values));
    }

    public Value scalar(float value) {
        return constant("number", ConstantTensor.floats(new long[0], value));
    }

    /**
     * Adds a node with one output.
     *
     * @param attributes Long, Float, String, long[] or Constant by name
     */
    public Value node(String type, List<Value> in, Map<String, Object> attributes, ElementType elements, int rank) {
        return nodes(type, in, attributes, List.of(elements), rank).get(0);
    }

    /** Adds a node with an output for each of the types. */
    public List<Value> nodes(
            String type, List<Value> in, Map<String, Object> attributes, List<ElementType> elements, int rank) {
        List<Value> out = new ArrayList<>();
        for (ElementType e : elements) {
            out.add(new Value(fresh(type), e, rank, null));
        }
        for (Value v : in) {
            ConstantTensor constant = v.constant();
            if (constant != null) {
                constants.put(v.name(), constant);
            }
        }
        nodes.add(new Node(
                type,
                in.stream().map(Value::name).toList(),
                out.stream().map(Value::name).toList(),
                attributes));
        return out;
    }

    /** Serialises the graph as an ONNX {@code ModelProto}. Constants that no node uses are left out. */
    public byte[] toModel(String name) {
        ProtobufWriter out = new ProtobufWriter();
        out.varintField(1, IR_VERSION);
        out.textField(2, "nereid");
        int opset = out.begin(8);
        out.varintField(2, OPSET);
        out.end(opset);
        int graph = out.begin(7);
        out.presentTextField(2, name);
        for (Node node : nodes) {
            write(out, node);
        }
        constants.forEach((key, constant) -> {
            int at = out.begin(5);
            write(out, constant, key);
            out.end(at);
        });
        inputs.forEach(p -> write(out, 11, p));
        outputs.forEach(p -> write(out, 12, p));
        out.end(graph);
        return out.toByteArray();
    }

    private void write(ProtobufWriter out, Node node) {
        int at = out.begin(1);
        node.inputs.forEach(i -> out.presentTextField(1, renamed.getOrDefault(i, i)));
        node.outputs.forEach(o -> out.presentTextField(2, renamed.getOrDefault(o, o)));
        out.presentTextField(3, node.outputs.get(0));
        out.presentTextField(4, node.type);
        node.attributes.forEach((name, value) -> {
            int attribute = out.begin(5);
            out.presentTextField(1, name);
            if (value instanceof Long i) {
                out.varintField(3, i);
                out.varintField(20, 2);
            } else if (value instanceof Float f) {
                out.floatField(2, f);
                out.varintField(20, 1);
            } else if (value instanceof String s) {
                out.presentTextField(4, s);
                out.varintField(20, 3);
            } else if (value instanceof ConstantTensor c) {
                int tensor = out.begin(5);
                write(out, c, "");
                out.end(tensor);
                out.varintField(20, 4);
            } else {
                Arrays.stream((long[]) value).forEach(i -> out.varintField(8, i));
                out.varintField(20, 7);
            }
            out.end(attribute);
        });
        out.end(at);
    }

    private static void write(ProtobufWriter out, ConstantTensor constant, String name) {
        for (long d : constant.dims()) {
            out.varintField(1, d);
        }
        out.varintField(2, constant.type().onnx());
        out.textField(8, name);
        if (constant.type() == ElementType.STRING) {
            constant.strings().forEach(s -> out.bytesField(6, s));
        } else {
            out.bytesField(9, constant.raw());
        }
    }

    private static void write(ProtobufWriter out, int field, Port port) {
        int info = out.begin(field);
        out.presentTextField(1, port.name);
        int type = out.begin(2);
        int tensor = out.begin(1);
        out.varintField(1, port.type.onnx());
        Shape shape = port.shape;
        if (shape != null) {
            int dims = out.begin(2);
            for (int i = 0; i < shape.rank(); i++) {
                int dim = out.begin(1);
                if (shape.dim(i) >= 0) {
                    out.varintField(1, shape.dim(i));
                } else if (i == 0) {
                    out.presentTextField(2, "batch");
                }
                out.end(dim);
            }
            out.end(dims);
        }
        out.end(tensor);
        out.end(type);
        out.end(info);
    }
}
