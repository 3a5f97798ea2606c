// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.spi.config.TensorSpec;
import java.util.List;
import java.util.Map;

/**
 * A signature: a named set of inputs and outputs, as in TensorFlow's SavedModel. Immutable.
 *
 * @param method {@link #PREDICT}, {@link #CLASSIFY} or {@link #REGRESS}, or another name that the model defines
 * @param inputs under the names that clients use. Where the model is batched, shapes include the batch dimension in
 *     {@link ModelMetadata}, and exclude it in what a backend returns
 * @param outputs likewise
 * @param tensors names inside the model's graph by the name that clients use, where these differ
 */
public record Signature(String method, List<TensorSpec> inputs, List<TensorSpec> outputs, Map<String, String> tensors) {
    /** Maps tensors to tensors. */
    public static final String PREDICT = "tensorflow/serving/predict";

    /** Maps examples to classes with scores. */
    public static final String CLASSIFY = "tensorflow/serving/classify";

    /** Maps examples to one number each. */
    public static final String REGRESS = "tensorflow/serving/regress";
}
