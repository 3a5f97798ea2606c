// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.caffe2;

import io.nereid.backends.onnximport.caffe2.NetDef.Operator;
import io.nereid.backends.onnximport.onnx.ElementType;
import io.nereid.backends.onnximport.onnx.OnnxGraph;
import io.nereid.backends.onnximport.onnx.OnnxGraph.Value;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * Converts a Caffe2 net, with the init net that has its weights, to an ONNX model. Confined to one load.
 *
 * <ol>
 *   <li>Find the outputs and, backwards from them, the operators that they need; the others are left out.
 *   <li>Find the inputs: the blobs that are needed and that no operator writes. Their types and shapes come from the
 *       configuration, or from the weights that they meet ({@link InputShapes}), because nets do not declare them.
 *   <li>Convert operator by operator. Caffe2 may write a blob several times; each write is a new value in ONNX.
 * </ol>
 */
public final class Caffe2Converter {
    private static final String EXPORT =
            "export the model to ONNX where Caffe2 is installed (convert-caffe2-to-onnx), and serve model.onnx";

    private final Caffe2Operators known = new Caffe2Operators();
    private final NetDef init;
    private final NetDef net;
    private final ModelConfig config;
    private final Map<String, TensorSpec> feeds = new LinkedHashMap<>();
    private final Map<String, TensorSpec> fetches = new LinkedHashMap<>();

    public Caffe2Converter(NetDef init, NetDef net, ModelConfig config) {
        this.init = init;
        this.net = net;
        this.config = config;
        config.modelInputs().forEach(spec -> feeds.put(spec.name(), spec));
        config.modelOutputs().forEach(spec -> fetches.put(spec.name(), spec));
    }

    /**
     * Converts the net and returns the serialized ONNX model.
     *
     * @throws ServingException INVALID_ARGUMENT when the net cannot be converted; the message names the operators
     */
    public byte[] convert() {
        Set<String> outputs = outputs();
        Set<String> needed = new LinkedHashSet<>(outputs);
        List<Operator> operators = needed(needed);
        rejectUnknown(operators);
        List<String> inputs = inputs(needed);
        Set<String> reserved = new HashSet<>(inputs);
        reserved.addAll(outputs);
        OnnxGraph graph = new OnnxGraph(reserved);
        Map<String, Value> blobs = new HashMap<>();
        InputShapes shapes = new InputShapes(operators);
        for (String input : inputs) {
            if (outputs.contains(input)) {
                throw ServingException.invalidArgument(
                        "blob '" + input + "' of the net is both an input and an output",
                        "give the result another name in the net, or export the model to ONNX");
            }
            blobs.put(input, input(graph, input, shapes));
        }
        for (Operator operator : operators) {
            run(operator, graph, blobs);
        }
        for (String output : outputs) {
            Value value = blobs.get(output);
            if (value == null) {
                throw ServingException.invalidArgument(
                        "output '" + output + "' of the net is an output that the ONNX operator does not have", EXPORT);
            }
            TensorSpec spec = fetches.get(output);
            graph.output(output, value, spec == null ? null : whole(spec));
        }
        return graph.toModel(net.name());
    }

    private void run(Operator operator, OnnxGraph graph, Map<String, Value> blobs) {
        List<Value> in = new ArrayList<>();
        for (String name : operator.inputs()) {
            Value value = blobs.get(name);
            if (value == null) {
                throw ServingException.invalidArgument(
                        "operator '" + operator.type() + "' reads '" + name
                                + "', which another operator writes and does not have as an output in ONNX",
                        EXPORT);
            }
            in.add(value);
        }
        OperatorContext call = new OperatorContext(operator, in, graph);
        List<Value> values;
        try {
            values = Objects.requireNonNull(known.of(operator.type())).convert(call);
        } catch (ArithmeticException | IndexOutOfBoundsException | NegativeArraySizeException e) {
            throw call.rejected("its arguments are inconsistent", "the file is damaged: export it again");
        }
        for (int i = 0; i < operator.outputs().size(); i++) {
            if (i < values.size()) {
                blobs.put(operator.outputs().get(i), values.get(i));
            } else {
                blobs.remove(operator.outputs().get(i));
            }
        }
    }

    /** The operators of both nets, without those that fill blobs which are inputs. */
    private List<Operator> all() {
        List<Operator> all = new ArrayList<>();
        Set<String> given = new HashSet<>(feeds.keySet());
        if (given.isEmpty()) {
            given.addAll(placeholders());
        }
        for (Operator o : init.operators()) {
            if (!o.inputs().isEmpty() || !given.containsAll(o.outputs())) {
                all.add(o);
            }
        }
        all.addAll(net.operators());
        return all;
    }

    /**
     * Inputs that the init net fills with a placeholder of one element. Exporters write these for a net whose inputs
     * would otherwise be undefined; they count as inputs only if the net does not have others.
     */
    private Set<String> placeholders() {
        Set<String> inputs = new LinkedHashSet<>(net.inputs());
        Set<String> single = new LinkedHashSet<>();
        for (Operator o : init.operators()) {
            NetDef.Argument shape = o.arguments().get("shape");
            if (o.type().equals("ConstantFill")
                    && o.outputs().size() == 1
                    && inputs.contains(o.outputs().get(0))
                    && (shape == null || (shape.ints().length == 1 && shape.ints()[0] == 1))) {
                single.add(o.outputs().get(0));
            }
            inputs.removeAll(o.outputs());
        }
        return inputs.isEmpty() ? single : Set.of();
    }

    /** The outputs: those that the net declares, and other blobs that the configuration lists as outputs. */
    private Set<String> outputs() {
        Set<String> written = new LinkedHashSet<>();
        net.operators().forEach(o -> written.addAll(o.outputs()));
        Set<String> outputs = new LinkedHashSet<>(net.outputs());
        for (String name : fetches.keySet()) {
            if (written.contains(name)) {
                outputs.add(name);
            }
        }
        for (String name : outputs) {
            if (!written.contains(name)) {
                throw ServingException.invalidArgument(
                        "no operator of the net writes its output '" + name + "'",
                        "the file is damaged: export it again");
            }
        }
        // external_output is the last field of the file. If it is missing, the file may be truncated.
        if (outputs.isEmpty()) {
            throw ServingException.invalidArgument(
                    "the net declares no outputs (external_output)",
                    "if the file is complete, name the outputs in config.pbtxt: output [ { name: ... } ]");
        }
        return outputs;
    }

    /**
     * The operators that the outputs need, in their order.
     *
     * @param blobs the outputs; replaced by the blobs that are needed and that none of these operators writes
     */
    private List<Operator> needed(Set<String> blobs) {
        List<Operator> operators = new ArrayList<>();
        List<Operator> all = all();
        for (int i = all.size() - 1; i >= 0; i--) {
            Operator o = all.get(i);
            if (o.outputs().stream().anyMatch(blobs::contains)) {
                operators.add(o);
                o.outputs().forEach(blobs::remove);
                blobs.addAll(o.inputs());
            }
        }
        Collections.reverse(operators);
        return operators;
    }

    private void rejectUnknown(List<Operator> operators) {
        Set<String> unknown = new TreeSet<>();
        for (Operator o : operators) {
            if (known.of(o.type()) == null) {
                unknown.add("'" + o.type() + "'");
            }
        }
        if (!unknown.isEmpty()) {
            throw ServingException.invalidArgument(
                    "the net has " + (unknown.size() == 1 ? "an operator" : "operators") + " that cannot be converted: "
                            + String.join(", ", unknown),
                    EXPORT);
        }
    }

    /** The blobs that clients send, in the net's order. */
    private List<String> inputs(Set<String> needed) {
        List<String> inputs = new ArrayList<>();
        for (String name : net.inputs()) {
            if (needed.contains(name) && !inputs.contains(name)) {
                inputs.add(name);
            }
        }
        for (String name : needed) {
            if (!inputs.contains(name)) {
                if (!net.inputs().isEmpty() && !feeds.containsKey(name)) {
                    throw ServingException.invalidArgument(
                            "the net reads blob '" + name + "', which is not an input and which no operator"
                                    + " writes before",
                            "the file is damaged: export it again");
                }
                inputs.add(name);
            }
        }
        return inputs;
    }

    private Value input(OnnxGraph graph, String name, InputShapes shapes) {
        TensorSpec spec = feeds.get(name);
        if (spec == null) {
            Shape inferred = shapes.of(name);
            if (inferred == null) {
                throw ServingException.invalidArgument(
                        "the shape of input '" + name + "' cannot be determined from the net",
                        "if '" + name + "' is a weight, put the init net beside the net; else write the inputs into"
                                + " config.pbtxt: input [ { name: \"" + name
                                + "\" data_type: TYPE_FP32 dims: [ ... ] } ]");
            }
            return graph.input(name, ElementType.FLOAT, inferred);
        }
        ElementType type = ElementType.of(spec.dataType());
        if (type == null) {
            throw ServingException.invalidArgument(
                    "input '" + name + "' is configured as " + spec.dataType() + ", which Caffe2 does not have",
                    "expected: " + DataType.FP32 + ", " + DataType.INT32 + ", " + DataType.INT64 + ", ...");
        }
        Shape whole = whole(spec);
        Shape inferred = config.maxBatchSize() < 0 ? shapes.of(name) : null;
        // The configuration does not set max_batch_size, so its dims may be those of one row.
        boolean row = inferred != null && inferred.rank() == whole.rank() + 1;
        return graph.input(name, type, row ? whole.prepend(-1) : whole);
    }

    private Shape whole(TensorSpec spec) {
        return config.batched() ? spec.modelShape().prepend(-1) : spec.modelShape();
    }

    /** A declared output of the init net that it does not write, which shows that the file is incomplete; else null. */
    static @Nullable String missing(NetDef init) {
        Set<String> written = new HashSet<>();
        init.operators().forEach(o -> written.addAll(o.outputs()));
        return init.outputs().stream()
                .filter(o -> !written.contains(o))
                .findFirst()
                .orElse(null);
    }
}
