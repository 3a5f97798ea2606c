// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnximport.caffe2;

import io.nereid.backends.onnximport.caffe2.NetDef.Operator;
import io.nereid.backends.onnximport.onnx.ElementType;
import io.nereid.backends.onnximport.onnx.OnnxGraph;
import io.nereid.backends.onnximport.onnx.OnnxGraph.Value;
import io.nereid.base.ServingException;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.TensorSpec;
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
 * Turns a net and the one with its weights into an ONNX model: what the results do not need is left out, blobs that are
 * written several times become several values, and types and shapes of inputs are found. Confined to one load.
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
        config.feeds().forEach(spec -> feeds.put(spec.name(), spec));
        config.fetches().forEach(spec -> fetches.put(spec.name(), spec));
    }

    /** @throws ServingException INVALID_ARGUMENT when the net cannot be converted; the message names the operators */
    public byte[] convert() {
        Set<String> outputs = outputs();
        Set<String> needed = new LinkedHashSet<>(outputs);
        List<Operator> operators = needed(needed);
        refuseUnknown(operators);
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
                        "output '" + output + "' of the net is a result that ONNX's operator does not have", EXPORT);
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
                                + "', a result that the operator which gives it does not have in ONNX",
                        EXPORT);
            }
            in.add(value);
        }
        OperatorContext call = new OperatorContext(operator, in, graph);
        List<Value> values;
        try {
            values = Objects.requireNonNull(known.of(operator.type())).convert(call);
        } catch (ArithmeticException | IndexOutOfBoundsException | NegativeArraySizeException e) {
            throw call.refused("its settings do not fit together", "the file is damaged: export it anew");
        }
        for (int i = 0; i < operator.outputs().size(); i++) {
            if (i < values.size()) {
                blobs.put(operator.outputs().get(i), values.get(i));
            } else {
                blobs.remove(operator.outputs().get(i));
            }
        }
    }

    /** All operators, weights first; without the values that a configuration says are inputs. */
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

    /** Inputs that the init net fills with a single value, for want of data, where there are no others. */
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

    /** Results: those declared, and those that the configuration wants besides. */
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
                        "output '" + name + "' of the net is written by none of its operators",
                        "the file is damaged: export it anew");
            }
        }
        // The last thing in the file: where it is missing, so may be more.
        if (outputs.isEmpty()) {
            throw ServingException.invalidArgument(
                    "the net declares no outputs (external_output)",
                    "if the file is whole, name the outputs in config.pbtxt: output [ { name: ... } ]");
        }
        return outputs;
    }

    /** Those operators that the results need; the blobs needed become those that none of them gives. */
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

    private void refuseUnknown(List<Operator> operators) {
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

    /** Blobs to be given by clients, in the order of the net. */
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
                            "the net reads blob '" + name + "', which is no input, and which neither net writes before",
                            "the file is damaged: export it anew");
                }
                inputs.add(name);
            }
        }
        return inputs;
    }

    private Value input(OnnxGraph graph, String name, InputShapes shapes) {
        TensorSpec spec = feeds.get(name);
        if (spec == null) {
            Shape told = shapes.of(name);
            if (told == null) {
                throw ServingException.invalidArgument(
                        "nothing in the net tells the shape of input '" + name + "'",
                        "if '" + name + "' is a weight, put the init net beside the net; else write the inputs into"
                                + " config.pbtxt: input [ { name: \"" + name
                                + "\" data_type: TYPE_FP32 dims: [ ... ] } ]");
            }
            return graph.input(name, ElementType.FLOAT, told);
        }
        ElementType type = ElementType.of(spec.dataType());
        if (type == null) {
            throw ServingException.invalidArgument(
                    "input '" + name + "' is configured as " + spec.dataType() + ", which Caffe2 does not have",
                    "expected: " + DataType.FP32 + ", " + DataType.INT32 + ", " + DataType.INT64 + ", ...");
        }
        Shape whole = whole(spec);
        Shape told = config.maxBatchSize() < 0 ? shapes.of(name) : null;
        // With nothing said about batches, dims may be those of one row.
        boolean row = told != null && told.rank() == whole.rank() + 1;
        return graph.input(name, type, row ? whole.prepend(-1) : whole);
    }

    private Shape whole(TensorSpec spec) {
        return config.batched() ? spec.modelShape().prepend(-1) : spec.modelShape();
    }

    /** The blobs that weights are in; for a check that a file is whole. */
    static @Nullable String missing(NetDef init) {
        Set<String> written = new HashSet<>();
        init.operators().forEach(o -> written.addAll(o.outputs()));
        return init.outputs().stream()
                .filter(o -> !written.contains(o))
                .findFirst()
                .orElse(null);
    }
}
