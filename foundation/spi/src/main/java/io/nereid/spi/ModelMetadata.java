// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.spi.config.TensorSpec;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The description of one servable that clients may read. Immutable.
 *
 * @param id the version
 * @param platform {@code <project>_<format>}, such as {@code onnxruntime_onnx}
 * @param inputs in the model's order; shapes include the batch dimension (-1) where the model is batched
 * @param outputs likewise
 * @param maxBatchSize 0 when the first dimension is not a batch dimension
 * @param properties free-form properties
 * @param signatures the model's signatures by name; never empty
 */
public record ModelMetadata(
        ServableId id,
        String platform,
        List<TensorSpec> inputs,
        List<TensorSpec> outputs,
        int maxBatchSize,
        Map<String, String> properties,
        Map<String, Signature> signatures) {
    /** The signature that is used when a request names none. */
    public static final String DEFAULT_SIGNATURE = "serving_default";

    /**
     * The parameter of a configuration, and the property, of a model that answers as KServe's Python servers do: the only
     * output of Open Inference is {@value #KSERVE_OUTPUT}, and V1 answers {@code inputs} as it does {@code instances}.
     * The property's value is the name of the backend.
     */
    public static final String KSERVE_SERVER = "nereid.kserve_server";

    /**
     * The property, with the value {@code true}, of a model that takes tables with missing values: a {@code null} in JSON is
     * one, and read as NaN.
     */
    public static final String MISSING_VALUES = "nereid.missing_values";

    /**
     * The parameter of a configuration, and the property, with the value {@code true}, of a model that MLflow saved as a
     * Python function. Its requests over MLflow's protocol may have {@code params}; the names of a data frame's columns
     * reach a model with one matrix, and those of its result reach the client.
     */
    public static final String PYTHON_FUNCTION = "nereid.python_function";

    /**
     * The parameter of a configuration, and the property, with the names of BYTES outputs, separated by commas, whose elements are
     * documents: JSON, or literals of Python. Protocols of JSON write them as values instead of strings.
     */
    public static final String JSON_OUTPUTS = "nereid.json_outputs";

    /** The name of the output in KServe's Python servers. */
    public static final String KSERVE_OUTPUT = "output-0";

    /** Metadata of a model that has only the default signature. */
    public ModelMetadata(
            ServableId id,
            String platform,
            List<TensorSpec> inputs,
            List<TensorSpec> outputs,
            int maxBatchSize,
            Map<String, String> properties) {
        this(
                id,
                platform,
                inputs,
                outputs,
                maxBatchSize,
                properties,
                Map.of(DEFAULT_SIGNATURE, new Signature(Signature.PREDICT, inputs, outputs, Map.of())));
    }

    /**
     * Returns the signature of a name, where the empty name stands for the default signature; null for an unknown
     * name.
     */
    public @Nullable Signature signature(String name) {
        return signatures.get(name.isEmpty() ? DEFAULT_SIGNATURE : name);
    }
}
