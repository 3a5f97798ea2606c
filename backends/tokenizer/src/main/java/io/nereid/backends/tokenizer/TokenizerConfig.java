// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tokenizer;

import io.nereid.backend.BackendContext;
import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import java.util.List;

/** Auto-completion: checks a tokenizer's model configuration and fills in what it leaves out. Stateless. */
final class TokenizerConfig {
    static final String IDS = "input_ids";
    static final String MASK = "attention_mask";
    static final String TYPES = "token_type_ids";

    private static final List<String> OUTPUTS = List.of(IDS, MASK, TYPES);
    private static final int ROWS = 64;

    private TokenizerConfig() {}

    /** @throws ServingException INVALID_ARGUMENT for inputs or outputs that a tokenizer does not have */
    static ModelConfig complete(ModelConfig config, BackendContext context) {
        List<TensorSpec> inputs = config.inputs().isEmpty()
                ? List.of(new TensorSpec("TEXT", DataType.BYTES, Shape.of(1)))
                : config.inputs();
        List<TensorSpec> outputs = config.outputs().isEmpty()
                ? OUTPUTS.stream()
                        .map(name -> new TensorSpec(name, DataType.INT64, Shape.of(-1)))
                        .toList()
                : config.outputs();
        int rows =
                config.maxBatchSize() >= 0 ? config.maxBatchSize() : context.autoComplete() ? defaultRows(context) : 0;
        ModelConfig complete = config.completed(
                config.platform().isEmpty() ? TokenizerBackend.NAME : config.platform(),
                TokenizerBackend.NAME,
                rows,
                inputs,
                outputs,
                config.batching(),
                config.instances() > 0 ? config.instances() : Math.max(1, context.cores()));
        if (complete.modelInputs().size() > 2) {
            throw wrong(config, "has " + complete.modelInputs().size() + " inputs", "one, or two for pairs of texts");
        }
        for (TensorSpec spec : complete.modelInputs()) {
            Shape shape = spec.modelShape();
            if (spec.dataType() != DataType.BYTES || shape.rank() != 1 || spec.optional()) {
                throw wrong(
                        config,
                        "has input '" + spec.name() + "' " + spec.dataType() + shape,
                        "TYPE_STRING with dims [ 1 ], not optional");
            }
        }
        for (TensorSpec spec : complete.modelOutputs()) {
            int rank = spec.modelShape().rank();
            boolean integer = spec.dataType() == DataType.INT64 || spec.dataType() == DataType.INT32;
            if (!OUTPUTS.contains(spec.name()) || !integer || rank < 1 || rank > (rows > 0 ? 1 : 2)) {
                throw wrong(
                        config,
                        "has output '" + spec.name() + "' " + spec.dataType() + spec.modelShape(),
                        String.join(", ", OUTPUTS) + ", each TYPE_INT64 or TYPE_INT32 with dims [ -1 ]");
            }
        }
        return complete;
    }

    private static int defaultRows(BackendContext context) {
        String text = context.settings().getOrDefault("default-max-batch-size", String.valueOf(ROWS));
        try {
            int rows = Integer.parseInt(text.strip());
            if (rows >= 0) {
                return rows;
            }
        } catch (NumberFormatException e) {
            // Rejected below.
        }
        throw ServingException.invalidArgument(
                "setting 'default-max-batch-size' is '" + text + "' (expected: a whole number >= 0)");
    }

    private static ServingException wrong(ModelConfig config, String what, String expected) {
        return ServingException.invalidArgument(
                "model '" + config.name() + "' " + what + " (expected: " + expected + ")", "correct its configuration");
    }
}
