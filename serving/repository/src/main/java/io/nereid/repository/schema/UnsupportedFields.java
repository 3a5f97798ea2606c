// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.schema;

import java.util.Map;
import java.util.Set;

/** The reasons why some of Triton's fields are not supported, and what to use instead. Immutable. */
final class UnsupportedFields {
    private static final Reason CUDA = new Reason(
            "it steers CUDA graphs and streams of Triton's TensorRT backend", "remove it, nothing takes its place");

    private static final Map<String, Reason> REASONS = Map.of(
            "ModelConfig.runtime",
            new Reason(
                    "it chooses among the libraries of one backend, of which there is only one here",
                    "remove it, 'backend' alone decides"),
            "ModelInstanceGroup.secondary_devices",
            new Reason("only TensorRT uses NVDLA devices", "remove it, 'kind' and 'gpus' decide where instances run"),
            "Step.model_namespace",
            new Reason(
                    "a model's name is unique over all repositories",
                    "remove it, and rename one of two models of one name"),
            "Cuda.graphs",
            CUDA,
            "Cuda.busy_wait_events",
            CUDA,
            "Cuda.graph_spec",
            CUDA,
            "Cuda.output_copy_stream",
            CUDA);

    private UnsupportedFields() {}

    /**
     * A reason.
     *
     * @param why continues the message after "is not supported, "
     * @param remedy the next step
     */
    record Reason(String why, String remedy) {}

    /** The reason for one field of a message. */
    static Reason of(String message, String field) {
        return REASONS.getOrDefault(
                message + "." + field, new Reason("there is nothing here that it could steer", "remove it"));
    }

    /** The fields that have a reason, as {@code Message.field}. */
    static Set<String> fields() {
        return REASONS.keySet();
    }
}
