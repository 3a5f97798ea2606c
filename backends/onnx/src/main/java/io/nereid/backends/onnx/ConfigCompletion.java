// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.SequenceBatching;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Auto-completion: checks a model configuration against the inputs and outputs of the ONNX graph, and fills in what the
 * configuration leaves out. Confined to one load.
 */
final class ConfigCompletion {
    private final ModelConfig config;
    private final String backend;
    private final List<TensorBinding> inputs;
    private final List<TensorBinding> outputs;

    private final Set<String> defaulted;

    /**
     * Constructor.
     *
     * @param backend the name of the backend
     * @param defaulted inputs with a default value. ONNX Runtime's Java API does not list them, so they cannot be fed;
     *     the set is for the error message only
     */
    ConfigCompletion(
            ModelConfig config,
            String backend,
            List<TensorBinding> inputs,
            List<TensorBinding> outputs,
            Set<String> defaulted) {
        this.config = config;
        this.backend = backend;
        this.defaulted = defaulted;
        this.inputs = inputs;
        this.outputs = outputs;
    }

    /**
     * Completes and validates the configuration.
     *
     * @param fill whether tensors, batch size and batching may be filled in; if false, they are only checked
     * @param defaultMaxBatchSize used when the model can be batched and the configuration does not set a batch size; 0
     *     for no batching
     * @param instances the number of instances if the configuration does not set one
     * @throws ServingException INVALID_ARGUMENT when configuration and graph contradict each other
     */
    ModelConfig complete(boolean fill, int defaultMaxBatchSize, int instances) {
        boolean derived = config.inputs().isEmpty() || config.outputs().isEmpty() || config.maxBatchSize() < 0;
        int maxBatchSize = maxBatchSize(fill, defaultMaxBatchSize);
        boolean batched = maxBatchSize > 0;
        if (batched) {
            checkBatchable();
        }
        DynamicBatching batching = config.batching();
        if (batching == null && config.sequence() == null && derived && fill && maxBatchSize > 1) {
            batching = DynamicBatching.EAGER;
        }
        ModelConfig complete = config.completed(
                config.platform().isEmpty() ? OnnxBackend.PLATFORM : config.platform(),
                backend,
                maxBatchSize,
                fill ? inputs(batched) : inGraphOrder(config.inputs(), inputs),
                fill ? outputs(batched) : inGraphOrder(config.outputs(), outputs),
                batching,
                config.instances() > 0 ? config.instances() : instances);
        check(complete);
        return labelled(complete);
    }

    private int maxBatchSize(boolean fill, int defaultMaxBatchSize) {
        if (config.maxBatchSize() >= 0 || !fill) {
            return Math.max(0, config.maxBatchSize());
        }
        // A configuration that lists as many dimensions as the graph includes the batch dimension in its dims, which is
        // how an unbatched model is written (max_batch_size 0). Batching is not filled in for it.
        boolean full = false;
        for (TensorSpec spec : config.inputs()) {
            TensorBinding port = TensorBinding.named(inputs, spec.name());
            full |= port != null
                    && !spec.ragged()
                    && port.shape().rank() == spec.modelShape().rank();
        }
        for (TensorSpec spec : config.outputs()) {
            TensorBinding port = TensorBinding.named(outputs, spec.name());
            full |= port != null
                    && !scattered(spec.name())
                    && port.shape().rank() == spec.modelShape().rank();
        }
        return !full && notBatchable() == null && sameRows() && !inputs.isEmpty() ? defaultMaxBatchSize : 0;
    }

    /**
     * The configured inputs in the graph's order, or, if none are configured, all of the graph's inputs except controls
     * and states, which the sequence batcher feeds.
     */
    private List<TensorSpec> inputs(boolean batched) {
        if (!config.inputs().isEmpty()) {
            return inGraphOrder(config.inputs(), inputs);
        }
        Set<String> fed = new HashSet<>();
        config.modelInputs().forEach(spec -> fed.add(spec.name()));
        return taken(inputs, fed, batched);
    }

    /**
     * The configured outputs in the graph's order, or, if none are configured, all of the graph's that are not states.
     */
    private List<TensorSpec> outputs(boolean batched) {
        if (!config.outputs().isEmpty()) {
            return inGraphOrder(config.outputs(), outputs);
        }
        Set<String> states = new HashSet<>();
        SequenceBatching sequence = config.sequence();
        if (sequence != null) {
            sequence.states().forEach(state -> states.add(state.outputName()));
        }
        return taken(outputs, states, batched);
    }

    private static List<TensorSpec> taken(List<TensorBinding> ports, Set<String> without, boolean batched) {
        List<TensorSpec> specs = new ArrayList<>();
        for (TensorBinding port : ports) {
            if (!without.contains(port.name())) {
                Shape shape = batched ? port.shape().withoutFirst() : port.shape();
                // Clients see a scalar as a vector of one element: KServe's and Triton's shapes have at least one
                // dimension.
                boolean single = shape.rank() == 0;
                specs.add(new TensorSpec(
                        port.name(),
                        port.dataType(),
                        single ? Shape.of(1) : shape,
                        false,
                        false,
                        single && batched ? Shape.SCALAR : null));
            }
        }
        return List.copyOf(specs);
    }

    /**
     * Sorts the given tensors by the graph's order. Names that the graph does not have go to the end; {@link #known}
     * rejects them later.
     */
    private static List<TensorSpec> inGraphOrder(List<TensorSpec> given, List<TensorBinding> ports) {
        List<TensorSpec> ordered = new ArrayList<>(given);
        List<String> names = TensorBinding.names(ports);
        ordered.sort(Comparator.comparingInt(spec -> {
            int index = names.indexOf(spec.name());
            return index < 0 ? Integer.MAX_VALUE : index;
        }));
        return List.copyOf(ordered);
    }

    /** The first tensor that has no batch dimension, or null. */
    private @Nullable TensorBinding notBatchable() {
        for (List<TensorBinding> ports : List.of(inputs, outputs)) {
            for (TensorBinding port : ports) {
                if ((port.shape().rank() == 0 || port.shape().dim(0) != -1)
                        && (ports == inputs || !scattered(port.name()))) {
                    return port;
                }
            }
        }
        return null;
    }

    /**
     * Whether a batch output has this name. The graph's output is split by the shapes of an input, so that its own
     * shape need not be that of the configuration, nor begin with the batch dimension.
     */
    private boolean scattered(String output) {
        return config.batchOutputs().stream().anyMatch(b -> b.targets().contains(output));
    }

    /**
     * Whether the names of the inputs' first dimensions allow it to be the batch dimension. Two different names, as in
     * a matrix product, mean two independent sizes.
     */
    private boolean sameRows() {
        return inputs.stream()
                        .map(port -> port.dimNames().get(0))
                        .filter(name -> !name.isEmpty())
                        .distinct()
                        .count()
                <= 1;
    }

    private void checkBatchable() {
        TensorBinding port = notBatchable();
        if (port == null) {
            return;
        }
        String remedy = "set max_batch_size: 0, or export the model with a first dimension of any size";
        if (config.inputs().isEmpty() || config.outputs().isEmpty()) {
            throw ServingException.invalidArgument(
                    "autofill failed for model '" + config.name()
                            + "': model does not support batching while non-zero max_batch_size is specified (tensor '"
                            + port.name() + "' has shape " + port.shape() + ")",
                    remedy);
        }
        throw ServingException.invalidArgument(
                "model '" + config.name() + "', tensor '" + port.name()
                        + "': for the model to support batching the shape should have at least 1 dimension and the"
                        + " first dimension must be -1; but shape expected by the model is " + port.shape(),
                remedy);
    }

    /**
     * Checks everything that a run feeds (inputs, controls, states) and fetches (outputs, states) against the graph.
     */
    private void check(ModelConfig complete) {
        List<TensorSpec> feeds = complete.modelInputs();
        known(feeds, inputs, "input");
        if (feeds.size() != inputs.size()) {
            List<String> absent = new ArrayList<>(TensorBinding.names(inputs));
            absent.removeAll(feeds.stream().map(TensorSpec::name).toList());
            throw ServingException.invalidArgument(
                    "unable to load model '" + config.name() + "', configuration expects " + feeds.size()
                            + " inputs, model provides " + inputs.size(),
                    "add " + String.join(", ", absent) + ", or leave inputs out");
        }
        if (complete.outputs().isEmpty()) {
            throw ServingException.invalidArgument(
                    "unable to load model '" + config.name() + "', configuration expects 0 outputs, model provides "
                            + outputs.size(),
                    "add " + String.join(", ", TensorBinding.names(outputs))
                            + ", or let the server complete configurations");
        }
        known(complete.modelOutputs(), outputs, "output");
        Set<String> states = new HashSet<>();
        SequenceBatching sequence = complete.sequence();
        if (sequence != null) {
            sequence.states().forEach(state -> states.add(state.outputName()));
        }
        for (TensorSpec spec : feeds) {
            check(spec, "input", inputs, true, complete.batched());
        }
        for (TensorSpec spec : complete.modelOutputs()) {
            check(spec, "output", outputs, states.contains(spec.name()), complete.batched());
        }
    }

    private void known(List<TensorSpec> specs, List<TensorBinding> ports, String side) {
        Set<String> seen = new HashSet<>();
        for (TensorSpec spec : specs) {
            if (TensorBinding.named(ports, spec.name()) == null) {
                List<String> known = TensorBinding.names(ports);
                throw ServingException.invalidArgument(
                        "unable to load model '" + config.name() + "', configuration has " + side + " '" + spec.name()
                                + "' which the model does not have (it has " + String.join(", ", known) + ")"
                                + (defaulted.contains(spec.name())
                                        ? "; '" + spec.name()
                                                + "' has a default value, which ONNX Runtime's Java API "
                                                + "cannot replace"
                                        : ""),
                        NameSuggestions.didYouMean(spec.name(), known, "correct the name, or leave " + side + "s out"));
            }
            if (!seen.add(spec.name())) {
                throw ServingException.invalidArgument(
                        "configuration of model '" + config.name() + "' has " + side + " '" + spec.name() + "' twice");
            }
            if (spec.optional()) {
                throw ServingException.invalidArgument(
                        "unable to load model '" + config.name() + "', " + side + " '" + spec.name()
                                + "' is optional in the configuration, but the model needs it",
                        "remove 'optional'; only inputs with a default value can be left out, and they are not served");
            }
        }
    }

    /** @param anySize whether the configuration may fix a dimension that the graph leaves open (-1) */
    private void check(TensorSpec spec, String side, List<TensorBinding> ports, boolean anySize, boolean batched) {
        TensorBinding port = Objects.requireNonNull(TensorBinding.named(ports, spec.name()));
        if (spec.dataType() != port.dataType()) {
            throw ServingException.invalidArgument(
                    "unable to load model '" + config.name() + "', configuration expects datatype "
                            + typeName(spec.dataType()) + " for " + side + " '" + spec.name()
                            + "', model provides " + typeName(port.dataType()),
                    "set its type to " + typeName(port.dataType()));
        }
        if (ports == outputs && scattered(spec.name())) {
            return;
        }
        Shape own = spec.modelShape();
        if (!batched && port.shape().rank() == 0 && own.equals(Shape.of(1))) {
            return;
        }
        Shape whole = batched ? own.prepend(-1) : own;
        boolean fits = whole.rank() == port.shape().rank();
        for (int i = 0; fits && i < whole.rank(); i++) {
            fits = whole.dim(i) == port.shape().dim(i)
                    || (anySize && port.shape().dim(i) == -1);
        }
        if (!fits) {
            throw ServingException.invalidArgument(
                    "model '" + config.name() + "', tensor '" + spec.name() + "': the model expects "
                            + port.shape().rank() + " dimensions (shape " + port.shape()
                            + ") but the model configuration specifies " + whole.rank() + " dimensions "
                            + (batched
                                    ? "(an initial batch dimension because max_batch_size > 0 followed by the explicit "
                                            + "tensor shape, making complete shape " + whole + ")"
                                    : "(shape " + whole + ")"),
                    spec.ragged()
                            ? "a ragged input is one flat tensor: export the model with shape [-1] for it"
                            : "set dims to "
                                    + (batched && port.shape().rank() > 0
                                            ? port.shape().withoutFirst()
                                            : port.shape())
                                    + ", or leave them out");
        }
    }

    /** Uses the keys of ZipMap outputs as their labels, unless the configuration has labels for them. */
    private ModelConfig labelled(ModelConfig c) {
        Map<String, List<String>> labels = new LinkedHashMap<>(c.labels());
        for (TensorBinding port : outputs) {
            if (port.mapKeys() != null) {
                labels.putIfAbsent(port.name(), port.mapKeys());
            }
        }
        return labels.size() == c.labels().size()
                ? c
                : c.toBuilder().labels(labels).build();
    }

    private static String typeName(DataType type) {
        return type == DataType.BYTES ? "TYPE_STRING" : "TYPE_" + type;
    }
}
