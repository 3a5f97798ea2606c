// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.infer;

import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.Map;

/** One response of a model. Immutable and thread-safe. */
public final class InferResult {
    private final String modelName;
    private final String modelVersion;
    private final String id;
    private final Map<String, InferTensor> outputs;
    private final Map<String, Object> parameters;

    /** Makes a result of its parts, which are copied. */
    public InferResult(
            String modelName,
            String modelVersion,
            String id,
            Map<String, InferTensor> outputs,
            Map<String, Object> parameters) {
        this.modelName = modelName;
        this.modelVersion = modelVersion;
        this.id = id;
        this.outputs = Collections.unmodifiableMap(new LinkedHashMap<>(outputs));
        this.parameters = Collections.unmodifiableMap(new LinkedHashMap<>(parameters));
    }

    public String modelName() {
        return modelName;
    }

    /** The version that ran; empty when the server does not say it, as with V1. */
    public String modelVersion() {
        return modelVersion;
    }

    /** The id of the request; may be empty. */
    public String id() {
        return id;
    }

    /** The outputs by name, in their order. */
    public Map<String, InferTensor> outputs() {
        return outputs;
    }

    /**
     * An output.
     *
     * @throws IllegalArgumentException when the response does not have it; the message lists those that it has
     */
    public InferTensor output(String name) {
        InferTensor output = outputs.get(name);
        if (output == null) {
            throw new IllegalArgumentException(
                    "output '" + name + "' is not in the response (expected: one of " + outputs.keySet() + ")");
        }
        return output;
    }

    /** Parameters of the response, such as those that say whether it is the last one of a decoupled model. */
    public Map<String, Object> parameters() {
        return parameters;
    }

    @Override
    public String toString() {
        return modelName + (modelVersion.isEmpty() ? "" : " version " + modelVersion) + ": " + outputs;
    }
}
