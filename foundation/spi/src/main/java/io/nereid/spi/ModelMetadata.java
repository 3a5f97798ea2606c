// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * What clients may know about one servable. Immutable.
 *
 * @param id the version described
 * @param platform {@code <project>_<format>}, such as {@code onnxruntime_onnx}
 * @param inputs in the model's order; shapes as on the wire, the batch dimension (-1) included
 * @param outputs likewise
 * @param maxBatchSize 0 when the first dimension is not a batch dimension
 * @param properties free-form
 * @param signatures what the model can be asked for, by name; never empty
 */
public record ModelMetadata(
        ServableId id,
        String platform,
        List<TensorSpec> inputs,
        List<TensorSpec> outputs,
        int maxBatchSize,
        Map<String, String> properties,
        Map<String, Signature> signatures) {
    /** The signature that is meant when none is named. */
    public static final String DEFAULT_SIGNATURE = "serving_default";

    /** A model that can be asked for one thing: its outputs. */
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

    /** The signature of a name, the empty one standing for the default; null when there is none. */
    public @Nullable Signature signature(String name) {
        return signatures.get(name.isEmpty() ? DEFAULT_SIGNATURE : name);
    }

    /**
     * One thing a model can be asked for. Immutable.
     *
     * @param method {@link #PREDICT}, {@link #CLASSIFY} or {@link #REGRESS}; else the model's own word
     * @param inputs under the names that clients use; shapes as on the wire
     * @param outputs likewise
     * @param tensors names inside the model's graph by the name that clients use, where these differ
     */
    public record Signature(
            String method, List<TensorSpec> inputs, List<TensorSpec> outputs, Map<String, String> tensors) {
        /** Tensors to tensors. */
        public static final String PREDICT = "tensorflow/serving/predict";

        /** Examples to classes with scores. */
        public static final String CLASSIFY = "tensorflow/serving/classify";

        /** Examples to one number each. */
        public static final String REGRESS = "tensorflow/serving/regress";
    }
}
