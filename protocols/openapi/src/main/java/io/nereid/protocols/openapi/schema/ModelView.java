// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.openapi.schema;

import io.nereid.spi.ModelMetadata;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.spi.config.WarmupInput;
import io.nereid.spi.config.WarmupSample;
import io.nereid.tensor.Shape;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * What the documents use of a model. Immutable.
 *
 * @param metadata names, types and shapes as clients see them
 * @param sequence whether requests belong to sequences
 * @param decoupled whether a request may have any number of responses
 * @param explainable whether its predictions can be explained
 * @param shapes the shapes of examples by the names of inputs
 */
public record ModelView(
        ModelMetadata metadata, boolean sequence, boolean decoupled, boolean explainable, Map<String, long[]> shapes) {
    /**
     * The shapes of examples by input: 1 for a dimension of any size, or what the first sample of the warm-up has, which
     * the model is known to take.
     */
    private static Map<String, long[]> shapes(ModelMetadata metadata, ModelConfig config) {
        Map<String, WarmupInput> sample = config.warmups().stream()
                .filter(warmup -> warmup.batchSize() > 0)
                .map(WarmupSample::inputs)
                .findFirst()
                .orElse(Map.of());
        Map<String, long[]> shapes = new HashMap<>();
        for (TensorSpec input : metadata.inputs()) {
            long[] dims = input.shape().dims().clone();
            WarmupInput warmup = sample.get(input.name());
            long[] known = warmup == null ? new long[0] : warmup.shape().dims();
            int batch = dims.length - known.length;
            for (int i = 0; i < dims.length; i++) {
                if (dims[i] < 0) {
                    dims[i] = (batch == 0 || batch == 1) && i >= batch ? known[i - batch] : 1;
                }
            }
            shapes.put(input.name(), dims);
        }
        return shapes;
    }

    /** The view of a model. */
    public static ModelView of(ModelMetadata metadata, ModelConfig config, boolean explainable) {
        boolean sequence = config.sequence() != null;
        return new ModelView(
                metadata,
                sequence,
                config.decoupled(),
                explainable && !sequence && !config.decoupled(),
                shapes(metadata, config));
    }

    /** Whether an input may have missing values, which are null. */
    boolean missingValues() {
        return metadata.properties().containsKey(ModelMetadata.MISSING_VALUES);
    }

    /** Whether a signature has a method. */
    public boolean hasMethod(String method) {
        return metadata.signatures().values().stream().map(Signature::method).anyMatch(method::equals);
    }

    /** The inputs of an example, with its shapes. */
    List<TensorSpec> examples(List<TensorSpec> inputs) {
        return required(inputs).stream()
                .map(input -> new TensorSpec(
                        input.name(),
                        input.dataType(),
                        Shape.of(shapes.getOrDefault(input.name(), TensorSchemas.exampleShape(input)))))
                .toList();
    }

    static List<TensorSpec> required(List<TensorSpec> inputs) {
        return inputs.stream().filter(input -> !input.optional()).toList();
    }
}
