// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import io.nereid.backends.tensorflow.SavedModelFile.SignatureFacts;
import io.nereid.backends.tensorflow.SavedModelFile.TensorFacts;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A signature whose tensors have been found in the graph. Immutable.
 *
 * @param name the signature's
 * @param method such as {@code tensorflow/serving/predict}
 * @param inputs in the order of their names
 * @param outputs likewise
 */
record SignaturePorts(String name, String method, List<Port> inputs, List<Port> outputs) {
    private static final Set<String> FED = Set.of("Placeholder", "PlaceholderWithDefault", "PlaceholderV2");

    /**
     * Finds a signature's tensors.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT when one is not there or cannot be served
     */
    static SignaturePorts find(String model, String name, SignatureFacts facts, Graph graph, boolean checkShapes) {
        List<Port> inputs = new ArrayList<>();
        boolean binding = true;
        for (TensorFacts tensor : facts.inputs()) {
            Port port = find(model, name, "input", tensor, graph, checkShapes);
            binding &= port.binding();
            inputs.add(port);
        }
        List<Port> outputs = new ArrayList<>();
        for (TensorFacts tensor : facts.outputs()) {
            // A result has another shape than it should when an input has.
            outputs.add(find(model, name, "output", tensor, graph, binding));
        }
        return new SignaturePorts(name, facts.method(), List.copyOf(inputs), List.copyOf(outputs));
    }

    private static Port find(
            String model, String signature, String side, TensorFacts facts, Graph graph, boolean binding) {
        String what = side + " '" + facts.name() + "' of signature '" + signature + "'";
        if (facts.tensor().isEmpty()) {
            throw Graph.refused(
                    model,
                    what + " is not a dense tensor",
                    "sparse and composite tensors are not served: export a signature of dense ones");
        }
        DataType type = ElementTypes.served(facts.type());
        if (type == null) {
            throw Graph.refused(
                    model,
                    what + " is of type " + ElementTypes.name(facts.type()) + ", which clients cannot send",
                    "export a signature with numbers, booleans and strings only");
        }
        Graph.Output found = graph.output(facts.tensor());
        if (found == null) {
            throw Graph.refused(
                    model,
                    what + " is tensor '" + facts.tensor() + "', which the graph does not have",
                    "the file may be damaged: export the model again");
        }
        if (found.type() != facts.type()) {
            throw Graph.refused(
                    model,
                    what + " is of type " + type + ", but tensor '" + facts.tensor() + "' of "
                            + ElementTypes.name(found.type()),
                    "export the model again");
        }
        Shape shape = facts.shape();
        boolean input = side.equals("input");
        return new Port(
                facts.name(),
                facts.tensor(),
                found.operation(),
                found.index(),
                type,
                shape,
                binding && shape != null && (!input || FED.contains(found.kind())),
                facts.defaultValue());
    }

    /** What a graph without signatures takes and gives: what the configuration names, else its ends. */
    static SignaturePorts ofGraph(ModelConfig config, Graph graph, boolean checkShapes) {
        List<Port> inputs = new ArrayList<>();
        for (String name : named(config.feeds(), graph.ends(true))) {
            inputs.add(end(config.name(), "input", name, graph, checkShapes));
        }
        boolean binding = inputs.stream().allMatch(Port::binding);
        List<Port> outputs = new ArrayList<>();
        for (String name : named(config.fetches(), graph.ends(false))) {
            outputs.add(end(config.name(), "output", name, graph, binding));
        }
        return new SignaturePorts(
                "serving_default",
                io.nereid.spi.ModelMetadata.Signature.PREDICT,
                List.copyOf(inputs),
                List.copyOf(outputs));
    }

    private static Set<String> named(List<TensorSpec> specs, List<String> otherwise) {
        return new LinkedHashSet<>(
                specs.isEmpty()
                        ? otherwise
                        : specs.stream().map(TensorSpec::name).toList());
    }

    private static Port end(String model, String side, String name, Graph graph, boolean binding) {
        Graph.Output found = graph.output(name);
        if (found == null) {
            throw Graph.refused(
                    model,
                    "configuration has " + side + " '" + name + "' which the graph does not have",
                    "name an operation of the graph; its " + side + "s may be "
                            + String.join(", ", graph.ends(side.equals("input"))));
        }
        DataType type = ElementTypes.served(found.type());
        if (type == null) {
            throw Graph.refused(
                    model,
                    side + " '" + name + "' is of type " + ElementTypes.name(found.type())
                            + ", which clients cannot send",
                    "name the inputs and outputs in the configuration");
        }
        return new Port(
                name,
                name.indexOf(':') < 0 ? name + ":0" : name,
                found.operation(),
                found.index(),
                type,
                found.shape(),
                binding && found.shape() != null && (side.equals("output") || FED.contains(found.kind())),
                null);
    }

    /** The first tensor that has no batch dimension, or null when there is none. */
    @Nullable Port notBatchable() {
        for (List<Port> ports : List.of(inputs, outputs)) {
            for (Port port : ports) {
                if (!port.batchable()) {
                    return port;
                }
            }
        }
        return null;
    }
}
