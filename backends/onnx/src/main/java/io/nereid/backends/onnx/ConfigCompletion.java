// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.onnx;

import io.nereid.base.ServingException;
import io.nereid.base.Suggestions;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.Batching;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/** Holds a configuration against the graph and fills in what it leaves open. Confined to one load. */
final class ConfigCompletion {
    private final ModelConfig config;
    private final List<Port> inputs;
    private final List<Port> outputs;

    private final Set<String> defaulted;

    /** @param defaulted inputs with a default value, which the engine's Java interface hides */
    ConfigCompletion(ModelConfig config, List<Port> inputs, List<Port> outputs, Set<String> defaulted) {
        this.config = config;
        this.defaulted = defaulted;
        this.inputs = inputs;
        this.outputs = outputs;
    }

    /**
     * The whole configuration.
     *
     * @param defaultMaxBatchSize used when the model can be batched and nothing was said; 0 or 1 for no batching
     * @param instances used when none were given
     * @throws ServingException INVALID_ARGUMENT when configuration and graph contradict each other
     */
    ModelConfig complete(int defaultMaxBatchSize, int instances) {
        boolean derived = config.inputs().isEmpty() || config.outputs().isEmpty() || config.maxBatchSize() < 0;
        int maxBatchSize = maxBatchSize(defaultMaxBatchSize);
        boolean batched = maxBatchSize > 0;
        if (batched) {
            checkBatchable();
        }
        List<TensorSpec> givenInputs = specs(config.inputs(), inputs, "input", batched);
        List<TensorSpec> givenOutputs = specs(config.outputs(), outputs, "output", batched);
        Batching batching = config.batching();
        if (batching == null && derived && maxBatchSize > 1) {
            batching = Batching.EAGER;
        }
        return labelled(config.completed(
                config.platform().isEmpty() ? OnnxBackend.PLATFORM : config.platform(),
                OnnxBackend.NAME,
                maxBatchSize,
                givenInputs,
                givenOutputs,
                batching,
                config.instances() > 0 ? config.instances() : instances));
    }

    private int maxBatchSize(int defaultMaxBatchSize) {
        if (config.maxBatchSize() >= 0) {
            return config.maxBatchSize();
        }
        // Dimensions written down in full, the batch's included, mean that the writer wants no batching.
        boolean full = false;
        for (TensorSpec spec : config.inputs()) {
            Port port = Port.named(inputs, spec.name());
            full |= port != null && port.shape().rank() == spec.shape().rank();
        }
        for (TensorSpec spec : config.outputs()) {
            Port port = Port.named(outputs, spec.name());
            full |= port != null && port.shape().rank() == spec.shape().rank();
        }
        return !full && notBatchable() == null && sameRows() && !inputs.isEmpty() ? defaultMaxBatchSize : 0;
    }

    /** The first tensor that has no batch dimension, or null. */
    private @Nullable Port notBatchable() {
        for (List<Port> ports : List.of(inputs, outputs)) {
            for (Port port : ports) {
                if (port.shape().rank() == 0 || port.shape().dim(0) != -1) {
                    return port;
                }
            }
        }
        return null;
    }

    /** Whether nothing says that the inputs' first dimensions are different things, as in a product of two matrices. */
    private boolean sameRows() {
        return inputs.stream()
                        .map(port -> port.dimNames().get(0))
                        .filter(name -> !name.isEmpty())
                        .distinct()
                        .count()
                <= 1;
    }

    private void checkBatchable() {
        Port port = notBatchable();
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
                        + "': for the model to support batching the shape should have at least 1 dimension and the first "
                        + "dimension must be -1; but shape expected by the model is " + port.shape(),
                remedy);
    }

    private List<TensorSpec> specs(List<TensorSpec> given, List<Port> ports, String side, boolean batched) {
        List<TensorSpec> specs = new ArrayList<>();
        if (given.isEmpty()) {
            for (Port port : ports) {
                specs.add(new TensorSpec(
                        port.name(), port.dataType(), batched ? port.shape().withoutFirst() : port.shape()));
            }
            return List.copyOf(specs);
        }
        Map<String, TensorSpec> byName = new LinkedHashMap<>();
        for (TensorSpec spec : given) {
            if (Port.named(ports, spec.name()) == null) {
                List<String> known = Port.names(ports);
                throw ServingException.invalidArgument(
                        "unable to load model '" + config.name() + "', configuration has " + side + " '" + spec.name()
                                + "' which the model does not have (it has " + String.join(", ", known) + ")"
                                + (defaulted.contains(spec.name())
                                        ? "; '" + spec.name()
                                                + "' has a default value, which ONNX Runtime's Java interface "
                                                + "cannot replace"
                                        : ""),
                        Suggestions.didYouMean(spec.name(), known, "correct the name, or leave " + side + "s out"));
            }
            if (byName.put(spec.name(), spec) != null) {
                throw ServingException.invalidArgument(
                        "configuration of model '" + config.name() + "' has " + side + " '" + spec.name() + "' twice");
            }
        }
        boolean input = side.equals("input");
        if (input && byName.size() != ports.size()) {
            List<String> absent = new ArrayList<>(Port.names(ports));
            absent.removeAll(byName.keySet());
            throw ServingException.invalidArgument(
                    "unable to load model '" + config.name() + "', configuration expects " + byName.size()
                            + " inputs, model provides " + ports.size(),
                    "add " + String.join(", ", absent) + ", or leave inputs out");
        }
        for (Port port : ports) {
            TensorSpec spec = byName.get(port.name());
            if (spec != null) {
                specs.add(checked(spec, port, input, batched));
            }
        }
        return List.copyOf(specs);
    }

    private TensorSpec checked(TensorSpec spec, Port port, boolean input, boolean batched) {
        if (spec.dataType() != port.dataType()) {
            throw ServingException.invalidArgument(
                    "unable to load model '" + config.name() + "', configuration expects datatype "
                            + typeName(spec.dataType()) + " for " + (input ? "input" : "output") + " '" + spec.name()
                            + "', model provides " + typeName(port.dataType()),
                    "set its type to " + typeName(port.dataType()));
        }
        if (!batched && port.shape().rank() == 0 && spec.shape().equals(Shape.of(1))) {
            return spec;
        }
        Shape whole = batched ? spec.shape().prepend(-1) : spec.shape();
        boolean fits = whole.rank() == port.shape().rank();
        for (int i = 0; fits && i < whole.rank(); i++) {
            fits = whole.dim(i) == port.shape().dim(i) || (input && port.shape().dim(i) == -1);
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
                    "set dims to " + (batched ? port.shape().withoutFirst() : port.shape()) + ", or leave them out");
        }
        return spec;
    }

    /** The keys of map outputs become their labels, unless the user gave others. */
    private ModelConfig labelled(ModelConfig c) {
        Map<String, List<String>> labels = new LinkedHashMap<>(c.labels());
        for (Port port : outputs) {
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
