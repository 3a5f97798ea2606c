// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/**
 * Auto-completion: checks a model configuration against the model's signatures, and fills in what the configuration
 * leaves out. Confined to one load.
 */
final class ConfigCompletion {
    private final ModelConfig config;
    private final SignatureBinding signature;
    private final List<SignatureBinding> all;
    private final boolean resizable;

    /**
     * Constructor.
     *
     * @param signature the default signature, which the configuration describes
     * @param all every signature, including the default one
     * @param resizable whether a first dimension of 1 can serve as the batch dimension, in every signature
     */
    ConfigCompletion(ModelConfig config, SignatureBinding signature, List<SignatureBinding> all, boolean resizable) {
        this.config = config;
        this.signature = signature;
        this.all = all;
        this.resizable = resizable;
    }

    /**
     * Completes and validates the configuration.
     *
     * @param fill whether tensors, batch size and batching may be filled in; if false, they are only checked
     * @param defaultMaxBatchSize used when every signature can be batched and the configuration does not set a batch
     *     size; 0 for no batching
     * @param instances the number of instances if the configuration does not set one
     * @throws ServingException INVALID_ARGUMENT when configuration and model contradict each other
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
        Set<String> others = new HashSet<>();
        config.modelInputs().forEach(spec -> others.add(spec.name()));
        ModelConfig complete = config.completed(
                TfliteBackend.PLATFORM,
                TfliteBackend.NAME,
                maxBatchSize,
                tensors(config.inputs(), signature.inputs(), others, fill, batched),
                tensors(config.outputs(), signature.outputs(), Set.of(), fill, batched),
                batching,
                config.instances() > 0 ? config.instances() : instances);
        check(complete.modelInputs(), signature.inputs(), "input", batched, true);
        check(complete.modelOutputs(), signature.outputs(), "output", batched, false);
        return complete;
    }

    private int maxBatchSize(boolean fill, int defaultMaxBatchSize) {
        if (config.maxBatchSize() >= 0 || !fill) {
            return Math.max(0, config.maxBatchSize());
        }
        // A configuration that lists as many dimensions as the model includes the batch dimension in its dims, which is
        // how an unbatched model is written (max_batch_size 0). Batching is not filled in for it.
        boolean full = full(config.inputs(), signature.inputs()) || full(config.outputs(), signature.outputs());
        boolean batchable = all.stream()
                .allMatch(s -> !s.inputs().isEmpty()
                        && s.inputs().stream().allMatch(TensorBinding::batchable)
                        && s.outputs().stream().allMatch(TensorBinding::batchable));
        return batchable && !full ? defaultMaxBatchSize : 0;
    }

    private static boolean full(List<TensorSpec> specs, List<TensorBinding> ports) {
        for (TensorSpec spec : specs) {
            TensorBinding port = TensorBinding.named(ports, spec.name());
            if (port != null && port.shape().rank() == spec.modelShape().rank()) {
                return true;
            }
        }
        return false;
    }

    private static List<TensorSpec> tensors(
            List<TensorSpec> given, List<TensorBinding> ports, Set<String> without, boolean fill, boolean batched) {
        if (!given.isEmpty() || !fill) {
            List<TensorSpec> ordered = new ArrayList<>(given);
            List<String> names = TensorBinding.names(ports);
            ordered.sort(Comparator.comparingInt(spec -> {
                int index = names.indexOf(spec.name());
                return index < 0 ? Integer.MAX_VALUE : index;
            }));
            return List.copyOf(ordered);
        }
        return ports.stream()
                .filter(port -> !without.contains(port.name()))
                .map(port -> port.spec(batched))
                .toList();
    }

    private void checkBatchable() {
        for (SignatureBinding each : all) {
            for (List<TensorBinding> ports : List.of(each.inputs(), each.outputs())) {
                for (TensorBinding port : ports) {
                    boolean one =
                            resizable && port.shape().rank() > 0 && port.shape().dim(0) == 1;
                    if (!port.batchable() && !one) {
                        throw ServingException.invalidArgument(
                                "model '" + config.name()
                                        + "' does not support batching while non-zero max_batch_size is specified:"
                                        + " tensor '"
                                        + port.name() + "' has shape " + port.shape()
                                        + " (expected: a first dimension of any size)",
                                "set max_batch_size: 0, or convert the model with a first dimension of any size");
                    }
                }
            }
        }
    }

    private void check(List<TensorSpec> specs, List<TensorBinding> ports, String side, boolean batched, boolean whole) {
        List<String> known = TensorBinding.names(ports);
        Set<String> seen = new HashSet<>();
        for (TensorSpec spec : specs) {
            TensorBinding port = TensorBinding.named(ports, spec.name());
            if (port == null) {
                throw ServingException.invalidArgument(
                        "unable to load model '" + config.name() + "', configuration has " + side + " '" + spec.name()
                                + "' which the model does not have (it has " + String.join(", ", known) + ")",
                        NameSuggestions.didYouMean(spec.name(), known, "correct the name, or leave " + side + "s out"));
            }
            if (!seen.add(spec.name()) || spec.optional()) {
                throw ServingException.invalidArgument(
                        "unable to load model '" + config.name() + "', " + side + " '" + spec.name()
                                + (spec.optional()
                                        ? "' is optional in the configuration, but the model needs it"
                                        : "' is in the configuration twice"),
                        "correct the configuration, or leave " + side + "s out");
            }
            check(spec, port, side, batched);
        }
        if (specs.isEmpty() && !ports.isEmpty() || whole && specs.size() < ports.size()) {
            throw ServingException.invalidArgument(
                    "unable to load model '" + config.name() + "', configuration expects " + specs.size() + " " + side
                            + "s, model provides " + ports.size() + " (" + String.join(", ", known) + ")",
                    "add the others, or leave " + side + "s out");
        }
    }

    private void check(TensorSpec spec, TensorBinding port, String side, boolean batched) {
        if (spec.dataType() != port.dataType()) {
            throw ServingException.invalidArgument(
                    "unable to load model '" + config.name() + "', configuration expects datatype "
                            + typeName(spec.dataType()) + " for " + side + " '" + spec.name() + "', model provides "
                            + typeName(port.dataType()),
                    "set its type to " + typeName(port.dataType()));
        }
        if (spec.unchecked()) {
            return;
        }
        Shape whole = batched ? spec.modelShape().prepend(-1) : spec.modelShape();
        boolean fits = whole.rank() == port.shape().rank();
        for (int i = batched ? 1 : 0; fits && i < whole.rank(); i++) {
            long own = port.shape().dim(i);
            fits = whole.dim(i) == own || own == -1 || (side.equals("output") && whole.dim(i) == -1);
        }
        if (!fits && !(side.equals("output") && port.shape().rank() == 0)) {
            throw ServingException.invalidArgument(
                    "model '" + config.name() + "', tensor '" + spec.name() + "': the model expects shape "
                            + port.shape() + " but the model configuration specifies " + whole
                            + (batched ? ", its batch dimension included" : ""),
                    "set dims to " + (batched ? port.shape().withoutFirst() : port.shape()) + ", or leave them out");
        }
    }

    private static String typeName(DataType type) {
        return type == DataType.BYTES ? "TYPE_STRING" : "TYPE_" + type;
    }
}
