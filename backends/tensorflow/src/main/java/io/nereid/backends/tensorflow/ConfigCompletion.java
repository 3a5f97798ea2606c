// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tensorflow;

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
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * Auto-completion: checks a model configuration against the model's signatures, and fills in what the configuration
 * leaves out. Confined to one load.
 */
final class ConfigCompletion {
    private final ModelConfig config;
    private final SignatureBinding signature;
    private final List<SignatureBinding> all;

    /**
     * Constructor.
     *
     * @param signature the default signature, which the configuration describes
     * @param all every served signature, including the default one
     */
    ConfigCompletion(ModelConfig config, SignatureBinding signature, List<SignatureBinding> all) {
        this.config = config;
        this.signature = signature;
        this.all = all;
    }

    /**
     * Completes and validates the configuration.
     *
     * @param platform the platform of the model's format
     * @param fill whether tensors, batch size and batching may be filled in; if false, they are only checked
     * @param defaultMaxBatchSize used when every signature can be batched and the configuration does not set a batch
     *     size; 0 for no batching
     * @param instances the number of instances if the configuration does not set one
     * @throws ServingException INVALID_ARGUMENT when configuration and model contradict each other
     */
    ModelConfig complete(String platform, boolean fill, int defaultMaxBatchSize, int instances) {
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
                platform,
                TensorflowBackend.NAME,
                maxBatchSize,
                tensors(config.inputs(), signature.inputs(), fed(), fill, batched),
                tensors(config.outputs(), signature.outputs(), states(), fill, batched),
                batching,
                config.instances() > 0 ? config.instances() : instances);
        check(complete);
        return complete;
    }

    private int maxBatchSize(boolean fill, int defaultMaxBatchSize) {
        if (config.maxBatchSize() >= 0 || !fill) {
            return Math.max(0, config.maxBatchSize());
        }
        // A configuration that lists as many dimensions as the signature includes the batch dimension in its dims,
        // which is how an unbatched model is written (max_batch_size 0). Batching is not filled in for it.
        boolean full = full(config.inputs(), signature.inputs()) || full(config.outputs(), signature.outputs());
        boolean batchable = !full
                && all.stream()
                        .allMatch(s -> s.notBatchable() == null && !s.inputs().isEmpty());
        return batchable ? defaultMaxBatchSize : 0;
    }

    private static boolean full(List<TensorSpec> specs, List<TensorBinding> ports) {
        for (TensorSpec spec : specs) {
            TensorBinding port = TensorBinding.named(ports, spec.name());
            Shape shape = port == null ? null : port.shape();
            if (shape != null
                    && !spec.ragged()
                    && shape.rank() == spec.modelShape().rank()) {
                return true;
            }
        }
        return false;
    }

    /** The inputs that are fed already: those that the configuration lists, and the sequence batcher's. */
    private Set<String> fed() {
        Set<String> fed = new HashSet<>();
        config.modelInputs().forEach(spec -> fed.add(spec.name()));
        return fed;
    }

    private Set<String> states() {
        Set<String> states = new HashSet<>();
        SequenceBatching sequence = config.sequence();
        if (sequence != null) {
            sequence.states().forEach(state -> states.add(state.outputName()));
        }
        return states;
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
            TensorBinding bad = null;
            for (List<TensorBinding> ports : List.of(each.inputs(), each.outputs())) {
                for (TensorBinding port : ports) {
                    Shape shape = port.shape();
                    // A tensor that accepts any shape accepts batches, too.
                    boolean can = port.binding()
                            ? port.batchable()
                            : shape == null || shape.rank() == 0 || shape.dim(0) == -1;
                    bad = can || bad != null ? bad : port;
                }
            }
            if (bad == null && !each.inputs().isEmpty()) {
                continue;
            }
            throw ServingException.invalidArgument(
                    "model '" + config.name()
                            + "' does not support batching while non-zero max_batch_size is specified: "
                            + (bad == null
                                    ? "signature '" + each.name() + "' has no inputs"
                                    : "tensor '" + bad.name() + "' of signature '" + each.name() + "' has shape "
                                            + bad.shape() + " (expected: a first dimension of -1)"),
                    "set max_batch_size: 0, or export every signature with a first dimension of any size");
        }
    }

    private void check(ModelConfig complete) {
        List<TensorSpec> feeds = complete.modelInputs();
        known(feeds, signature.inputs(), "input");
        List<String> absent = new ArrayList<>();
        for (TensorBinding port : signature.inputs()) {
            if (port.defaultValue() == null
                    && feeds.stream().noneMatch(s -> s.name().equals(port.name()))) {
                absent.add(port.name());
            }
        }
        if (!absent.isEmpty()) {
            throw ServingException.invalidArgument(
                    "unable to load model '" + config.name() + "', configuration expects " + feeds.size()
                            + " inputs, model provides " + signature.inputs().size(),
                    "add " + String.join(", ", absent) + ", or leave inputs out");
        }
        if (complete.outputs().isEmpty()) {
            throw ServingException.invalidArgument(
                    "unable to load model '" + config.name() + "', configuration expects 0 outputs, model provides "
                            + signature.outputs().size(),
                    "add " + String.join(", ", TensorBinding.names(signature.outputs()))
                            + ", or let the server complete configurations");
        }
        known(complete.modelOutputs(), signature.outputs(), "output");
        feeds.forEach(spec -> check(spec, "input", signature.inputs(), complete.batched()));
        complete.modelOutputs().forEach(spec -> check(spec, "output", signature.outputs(), complete.batched()));
    }

    private void known(List<TensorSpec> specs, List<TensorBinding> ports, String side) {
        Set<String> seen = new HashSet<>();
        List<String> known = TensorBinding.names(ports);
        for (TensorSpec spec : specs) {
            TensorBinding port = TensorBinding.named(ports, spec.name());
            if (port == null) {
                throw ServingException.invalidArgument(
                        "unable to load model '" + config.name() + "', configuration has " + side + " '" + spec.name()
                                + "' which signature '" + signature.name() + "' does not have (it has "
                                + String.join(", ", known) + ")",
                        NameSuggestions.didYouMean(spec.name(), known, "correct the name, or leave " + side + "s out"));
            }
            if (!seen.add(spec.name())) {
                throw ServingException.invalidArgument(
                        "configuration of model '" + config.name() + "' has " + side + " '" + spec.name() + "' twice");
            }
            if (spec.optional() && port.defaultValue() == null) {
                throw ServingException.invalidArgument(
                        "unable to load model '" + config.name() + "', " + side + " '" + spec.name()
                                + "' is optional in the configuration, but the model needs it",
                        "remove 'optional'; only inputs with a default value in the signature can be left out");
            }
        }
    }

    private void check(TensorSpec spec, String side, List<TensorBinding> ports, boolean batched) {
        @Nullable TensorBinding port = TensorBinding.named(ports, spec.name());
        if (port == null) {
            return;
        }
        if (spec.dataType() != port.dataType()) {
            throw ServingException.invalidArgument(
                    "unable to load model '" + config.name() + "', configuration expects datatype "
                            + typeName(spec.dataType()) + " for " + side + " '" + spec.name() + "', model provides "
                            + typeName(port.dataType()),
                    "set its type to " + typeName(port.dataType()));
        }
        Shape shape = port.shape();
        if (shape == null || !port.binding() || spec.unchecked() || (side.equals("output") && scattered(spec.name()))) {
            return;
        }
        Shape own = spec.modelShape();
        Shape whole = batched ? own.prepend(-1) : own;
        if (shape.rank() == 0 && !batched && own.equals(Shape.of(1))) {
            return;
        }
        boolean fits = whole.rank() == shape.rank();
        for (int i = 0; fits && i < whole.rank(); i++) {
            fits = whole.dim(i) == shape.dim(i) || shape.dim(i) == -1 || (side.equals("output") && whole.dim(i) == -1);
        }
        if (!fits) {
            throw ServingException.invalidArgument(
                    "model '" + config.name() + "', tensor '" + spec.name() + "': the model expects " + shape.rank()
                            + " dimensions (shape " + shape + ") but the model configuration specifies "
                            + whole.rank() + " dimensions "
                            + (batched
                                    ? "(an initial batch dimension because max_batch_size > 0 followed by the explicit "
                                            + "tensor shape, making complete shape " + whole + ")"
                                    : "(shape " + whole + ")"),
                    "set dims to " + (batched && shape.rank() > 0 ? shape.withoutFirst() : shape)
                            + ", or leave them out");
        }
    }

    /** Whether a batch output has this name: what is split by an input's shapes need not have the signature's. */
    private boolean scattered(String output) {
        return config.batchOutputs().stream().anyMatch(b -> b.targets().contains(output));
    }

    private static String typeName(DataType type) {
        return type == DataType.BYTES ? "TYPE_STRING" : "TYPE_" + type;
    }
}
