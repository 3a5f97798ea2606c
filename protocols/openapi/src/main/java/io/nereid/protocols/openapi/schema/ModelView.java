// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.openapi.schema;

import io.nereid.spi.ModelMetadata;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import java.util.List;

/**
 * What the documents use of a model. Immutable.
 *
 * @param metadata names, types and shapes as clients see them
 * @param sequence whether requests belong to sequences
 * @param decoupled whether a request may have any number of responses
 * @param explainable whether its predictions can be explained
 */
public record ModelView(ModelMetadata metadata, boolean sequence, boolean decoupled, boolean explainable) {
    /** The view of a model. */
    public static ModelView of(ModelMetadata metadata, ModelConfig config, boolean explainable) {
        return new ModelView(metadata, config.sequence() != null, config.decoupled(), explainable);
    }

    /** Whether an input may have missing values, which are null. */
    boolean missingValues() {
        return metadata.properties().containsKey(ModelMetadata.MISSING_VALUES);
    }

    /** Whether a signature has a method. */
    public boolean hasMethod(String method) {
        return metadata.signatures().values().stream().map(Signature::method).anyMatch(method::equals);
    }

    static List<TensorSpec> required(List<TensorSpec> inputs) {
        return inputs.stream().filter(input -> !input.optional()).toList();
    }
}
