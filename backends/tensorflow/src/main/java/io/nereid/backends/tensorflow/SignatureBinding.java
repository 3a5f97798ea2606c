// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

import io.nereid.backends.tensorflow.SavedModelFile.SignatureFacts;
import io.nereid.backends.tensorflow.SavedModelFile.TensorFacts;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * A signature whose tensors are bound to operations of the graph. Immutable.
 *
 * @param name the signature's name
 * @param method the method name, such as {@code tensorflow/serving/predict}
 * @param inputs the inputs, sorted by name
 * @param outputs the outputs, sorted by name
 */
record SignatureBinding(String name, String method, List<TensorBinding> inputs, List<TensorBinding> outputs) {
    private static final Logger LOG = System.getLogger(SignatureBinding.class.getName());
    private static final Set<String> FED = Set.of("Placeholder", "PlaceholderWithDefault", "PlaceholderV2");

    /**
     * Binds a signature's tensors to the graph.
     *
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT when a tensor is missing or cannot be served
     */
    static SignatureBinding find(String model, String name, SignatureFacts facts, TfGraph graph, boolean checkShapes) {
        List<TensorBinding> inputs = new ArrayList<>();
        boolean binding = true;
        for (TensorFacts tensor : facts.inputs()) {
            TensorBinding port = find(model, name, "input", tensor, graph, checkShapes);
            binding &= port.binding();
            inputs.add(port);
        }
        List<TensorBinding> outputs = new ArrayList<>();
        for (TensorFacts tensor : facts.outputs()) {
            // If an input may have any shape, an output may have another shape than declared.
            outputs.add(find(model, name, "output", tensor, graph, binding));
        }
        return new SignatureBinding(name, facts.method(), List.copyOf(inputs), List.copyOf(outputs));
    }

    private static TensorBinding find(
            String model, String signature, String side, TensorFacts facts, TfGraph graph, boolean binding) {
        String what = side + " '" + facts.name() + "' of signature '" + signature + "'";
        if (facts.tensor().isEmpty()) {
            throw TfGraph.rejected(
                    model,
                    what + " is not a dense tensor",
                    "sparse and composite tensors are not served: export a signature of dense ones");
        }
        TfGraph.Output found = graph.output(facts.tensor());
        if (found == null) {
            throw TfGraph.rejected(
                    model,
                    what + " is tensor '" + facts.tensor() + "', which the graph does not have",
                    "the file may be damaged: export the model again");
        }
        DataType type = TfElementTypes.served(found.type());
        if (type == null) {
            throw TfGraph.rejected(
                    model,
                    what + " is of type " + TfElementTypes.name(found.type()) + ", which clients cannot send",
                    "export a signature with numbers, booleans and strings only");
        }
        if (found.type() != facts.type()) {
            // TensorFlow Serving feeds and fetches tensors of the graph's type, whatever the signature says.
            LOG.log(
                    Level.WARNING,
                    "model ''{0}'': {1} is declared as {2}, but tensor ''{3}'' of the graph is {4}, and served so",
                    model,
                    what,
                    typeName(facts.type()),
                    facts.tensor(),
                    type);
        }
        Shape shape = facts.shape();
        boolean input = side.equals("input");
        return new TensorBinding(
                facts.name(),
                facts.tensor(),
                found.operation(),
                found.index(),
                type,
                shape,
                binding && shape != null && (!input || FED.contains(found.kind())),
                facts.defaultValue());
    }

    private static String typeName(int type) {
        DataType served = TfElementTypes.served(type);
        return served == null ? TfElementTypes.name(type) : served.toString();
    }

    /**
     * Makes a signature for a graph that does not have any: the tensors that the configuration names, else the graph's
     * placeholders and unconsumed outputs.
     */
    static SignatureBinding ofGraph(ModelConfig config, TfGraph graph, boolean checkShapes) {
        List<TensorBinding> inputs = new ArrayList<>();
        for (String name : named(config.modelInputs(), graph.ends(true))) {
            inputs.add(end(config.name(), "input", name, graph, checkShapes));
        }
        boolean binding = inputs.stream().allMatch(TensorBinding::binding);
        List<TensorBinding> outputs = new ArrayList<>();
        for (String name : named(config.modelOutputs(), graph.ends(false))) {
            outputs.add(end(config.name(), "output", name, graph, binding));
        }
        return new SignatureBinding("serving_default", Signature.PREDICT, List.copyOf(inputs), List.copyOf(outputs));
    }

    private static Set<String> named(List<TensorSpec> specs, List<String> otherwise) {
        return new LinkedHashSet<>(
                specs.isEmpty()
                        ? otherwise
                        : specs.stream().map(TensorSpec::name).toList());
    }

    private static TensorBinding end(String model, String side, String name, TfGraph graph, boolean binding) {
        TfGraph.Output found = graph.output(name);
        if (found == null) {
            throw TfGraph.rejected(
                    model,
                    "configuration has " + side + " '" + name + "' which the graph does not have",
                    "name an operation of the graph; its " + side + "s may be "
                            + String.join(", ", graph.ends(side.equals("input"))));
        }
        DataType type = TfElementTypes.served(found.type());
        if (type == null) {
            throw TfGraph.rejected(
                    model,
                    side + " '" + name + "' is of type " + TfElementTypes.name(found.type())
                            + ", which clients cannot send",
                    "name the inputs and outputs in the configuration");
        }
        return new TensorBinding(
                name,
                name.indexOf(':') < 0 ? name + ":0" : name,
                found.operation(),
                found.index(),
                type,
                found.shape(),
                binding && found.shape() != null && (side.equals("output") || FED.contains(found.kind())),
                null);
    }

    /** Returns the first tensor without a batch dimension, or null when all have one. */
    @Nullable TensorBinding notBatchable() {
        for (List<TensorBinding> ports : List.of(inputs, outputs)) {
            for (TensorBinding port : ports) {
                if (!port.batchable()) {
                    return port;
                }
            }
        }
        return null;
    }
}
