// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.graph;

import io.nereid.backends.huggingface.weights.WeightTensor;
import io.nereid.backends.huggingface.weights.WeightType;
import io.nereid.protobuf.ProtobufWriter;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * An ONNX graph under construction, of opset 17 and ONNX Runtime's own operators. Weights are external tensors: the graph has the
 * place of each in its file. Values are named by the strings that the methods return. Confined to one thread.
 */
public final class EncoderGraph {
    /** The domain of ONNX Runtime's own operators. */
    static final String CONTRIB = "com.microsoft";

    private static final int OPSET = 17;
    private static final int IR_VERSION = 8;
    private static final int FLOAT = 1;
    private static final int INT64 = 7;
    private static final int EXTERNAL = 1;

    private final ProtobufWriter nodes = new ProtobufWriter();
    /** The weights of the graph, with their names there. */
    private final Map<WeightTensor, String> weights = new LinkedHashMap<>();

    private final Map<WeightTensor, String> cast = new LinkedHashMap<>();
    private final Map<String, byte[]> constants = new LinkedHashMap<>();
    private final List<Port> inputs = new ArrayList<>();
    private final List<Port> outputs = new ArrayList<>();
    private int width;
    private int counter;

    /** @param last the last dimension; -1 for any size */
    private record Port(String name, int type, int rank, long last) {}

    /** Adds an input of INT64 with so many dimensions, all of any size. */
    String input(String name, int rank) {
        inputs.add(new Port(name, INT64, rank, -1));
        return name;
    }

    /**
     * Makes an FP32 value the output of the graph.
     *
     * @param lastDimension its last dimension
     */
    void output(String name, String value, int rank, long lastDimension) {
        width = Math.toIntExact(lastDimension);
        emit("Identity", "", List.of(value), name, Map.of());
        outputs.add(new Port(name, FLOAT, rank, lastDimension));
    }

    /** The last dimension of the output. */
    public int outputWidth() {
        return width;
    }

    /** Names of the inputs, in the graph's order. */
    public List<String> inputs() {
        return inputs.stream().map(Port::name).toList();
    }

    /** The number of dimensions of an output, and its name. */
    public Map<String, Integer> outputs() {
        Map<String, Integer> ranks = new LinkedHashMap<>();
        outputs.forEach(p -> ranks.put(p.name, p.rank));
        return ranks;
    }

    /** Adds a node with one output and no attributes. */
    String node(String type, String... in) {
        return node(type, "", Map.of(), in);
    }

    /**
     * Adds a node with one output.
     *
     * @param attributes Long, Float or long[] by name
     * @param in its inputs; empty for an optional one that is left out
     */
    String node(String type, String domain, Map<String, Object> attributes, String... in) {
        String out = type + ":" + ++counter;
        emit(type, domain, List.of(in), out, attributes);
        return out;
    }

    private void emit(String type, String domain, List<String> in, String out, Map<String, Object> attributes) {
        int at = nodes.begin(1);
        in.forEach(name -> nodes.presentTextField(1, name));
        nodes.presentTextField(2, out);
        nodes.presentTextField(3, out);
        nodes.presentTextField(4, type);
        attributes.forEach((name, value) -> {
            int attribute = nodes.begin(5);
            nodes.presentTextField(1, name);
            if (value instanceof Long i) {
                nodes.varintField(3, i);
                nodes.varintField(20, 2);
            } else if (value instanceof Float f) {
                nodes.floatField(2, f);
                nodes.varintField(20, 1);
            } else {
                for (long i : (long[]) value) {
                    nodes.varintField(8, i);
                }
                nodes.varintField(20, 7);
            }
            nodes.end(attribute);
        });
        nodes.textField(7, domain);
        nodes.end(at);
    }

    /** A weight as FP32. Weights of 16 bits are converted by a node, which ONNX Runtime replaces by its result. */
    String weight(WeightTensor tensor) {
        // Files of one model may have weights of the same name.
        String name = weights.computeIfAbsent(tensor, t -> t.name() + "@" + weights.size());
        if (tensor.type() == WeightType.F32) {
            return name;
        }
        String known = cast.get(tensor);
        if (known == null) {
            known = node("Cast", "", Map.of("to", (long) FLOAT), name);
            cast.put(tensor, known);
        }
        return known;
    }

    /** A constant INT64 vector. */
    String longs(long... values) {
        ByteBuffer raw = ByteBuffer.allocate(values.length * Long.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        raw.asLongBuffer().put(values);
        return constant(INT64, new long[] {values.length}, raw.array());
    }

    /** A constant INT64 without dimensions. */
    String number(long value) {
        return constant(
                INT64,
                new long[0],
                ByteBuffer.allocate(Long.BYTES)
                        .order(ByteOrder.LITTLE_ENDIAN)
                        .putLong(value)
                        .array());
    }

    /** A constant FP32 without dimensions. */
    String scalar(float value) {
        return floats(new long[0], value);
    }

    /** A constant FP32 tensor. */
    String floats(long[] dims, float... values) {
        ByteBuffer raw = ByteBuffer.allocate(values.length * Float.BYTES).order(ByteOrder.LITTLE_ENDIAN);
        raw.asFloatBuffer().put(values);
        return constant(FLOAT, dims, raw.array());
    }

    private String constant(int type, long[] dims, byte[] raw) {
        String name = "constant:" + ++counter;
        ProtobufWriter out = new ProtobufWriter();
        for (long d : dims) {
            out.varintField(1, d);
        }
        out.varintField(2, type);
        out.textField(8, name);
        out.bytesField(9, raw);
        constants.put(name, out.toByteArray());
        return name;
    }

    /** The files with weights of the graph, by the names that the graph has for them. */
    public Map<String, Path> files() {
        Map<Path, String> names = names();
        Map<String, Path> files = new LinkedHashMap<>();
        names.forEach((path, name) -> files.put(name, path));
        return files;
    }

    private Map<Path, String> names() {
        Map<Path, String> names = new LinkedHashMap<>();
        weights.keySet().forEach(w -> names.putIfAbsent(w.file(), "weights-" + names.size()));
        return names;
    }

    /** The bytes of all weights of the graph. */
    public long weightBytes() {
        return weights.keySet().stream().mapToLong(WeightTensor::bytes).sum();
    }

    /** Serialises the graph as an ONNX {@code ModelProto}. */
    public byte[] toModel(String name) {
        ProtobufWriter out = new ProtobufWriter();
        out.varintField(1, IR_VERSION);
        out.textField(2, "nereid");
        int graph = out.begin(7);
        // The nodes are fields of the graph and already have their tags.
        byte[] serialised = nodes.toByteArray();
        append(out, serialised);
        out.presentTextField(2, name);
        constants.values().forEach(c -> out.bytesField(5, c));
        Map<Path, String> names = names();
        weights.forEach((w, own) -> write(out, w, own, String.valueOf(names.get(w.file()))));
        inputs.forEach(p -> write(out, 11, p));
        outputs.forEach(p -> write(out, 12, p));
        out.end(graph);
        opset(out, "", OPSET);
        opset(out, CONTRIB, 1);
        return out.toByteArray();
    }

    private static void append(ProtobufWriter out, byte[] bytes) {
        int at = out.reserve(bytes.length);
        System.arraycopy(bytes, 0, out.array(), at, bytes.length);
    }

    private static void opset(ProtobufWriter out, String domain, int version) {
        int at = out.begin(8);
        out.textField(1, domain);
        out.varintField(2, version);
        out.end(at);
    }

    private static void write(ProtobufWriter out, WeightTensor weight, String name, String file) {
        int at = out.begin(5);
        for (long d : weight.shape()) {
            out.varintField(1, d);
        }
        out.varintField(2, weight.type().onnx());
        out.textField(8, name);
        entry(out, "location", file);
        entry(out, "offset", Long.toString(weight.offset()));
        entry(out, "length", Long.toString(weight.bytes()));
        out.varintField(14, EXTERNAL);
        out.end(at);
    }

    private static void entry(ProtobufWriter out, String key, String value) {
        int at = out.begin(13);
        out.textField(1, key);
        out.textField(2, value);
        out.end(at);
    }

    private static void write(ProtobufWriter out, int field, Port port) {
        int info = out.begin(field);
        out.presentTextField(1, port.name);
        int type = out.begin(2);
        int tensor = out.begin(1);
        out.varintField(1, port.type);
        int dims = out.begin(2);
        for (int i = 0; i < port.rank; i++) {
            int dim = out.begin(1);
            if (i == port.rank - 1 && port.last >= 0) {
                out.varintField(1, port.last);
            } else {
                out.presentTextField(2, port.name + ":" + i);
            }
            out.end(dim);
        }
        out.end(dims);
        out.end(tensor);
        out.end(type);
        out.end(info);
    }
}
