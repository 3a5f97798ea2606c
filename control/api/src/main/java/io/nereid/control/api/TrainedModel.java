// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.nereid.base.ServingException;

/**
 * A model of an InferenceService that serves many, KServe's TrainedModel. Immutable, except for the tree, which must not
 * be modified.
 *
 * @param namespace the namespace of the model and of its service
 * @param name the name that clients use
 * @param service the InferenceService that serves it
 * @param framework the format, such as {@code sklearn}
 * @param storageUri where its files are
 * @param memory what it needs, as written, such as {@code 256Mi}
 * @param memoryBytes the same in bytes; at least 0
 * @param tree the whole resource
 */
public record TrainedModel(
        String namespace,
        String name,
        String service,
        String framework,
        String storageUri,
        String memory,
        long memoryBytes,
        ObjectNode tree) {

    /**
     * Reads a stored resource.
     *
     * @throws ServingException INVALID_ARGUMENT for a quantity that cannot be read
     */
    public static TrainedModel read(ObjectNode resource) {
        JsonNode metadata = resource.path("metadata");
        JsonNode spec = resource.path("spec");
        JsonNode model = spec.path("model");
        String memory = model.path("memory").asText("");
        return new TrainedModel(
                metadata.path("namespace").asText(""),
                metadata.path("name").asText(""),
                spec.path("inferenceService").asText(""),
                model.path("framework").asText(""),
                model.path("storageUri").asText(""),
                memory,
                memory.isEmpty() ? 0 : Math.max(0, Quantity.parse(memory).units()),
                resource);
    }
}
