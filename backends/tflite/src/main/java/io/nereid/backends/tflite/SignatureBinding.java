// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import io.nereid.tensor.DataType;
import java.util.List;
import java.util.stream.Stream;

/**
 * The inputs and outputs of one signature. Immutable.
 *
 * @param key its name in the file; empty for a model without signatures
 * @param inputs the inputs, in the file's order
 * @param outputs the outputs, in the file's order
 */
record SignatureBinding(String key, List<TensorBinding> inputs, List<TensorBinding> outputs) {
    /** Whether all tensors have a fixed batch size of 1 and their rows can be concatenated. */
    boolean single() {
        return !inputs.isEmpty()
                && Stream.concat(inputs.stream(), outputs.stream())
                        .allMatch(p -> p.shape().rank() > 1 && p.shape().dim(0) == 1 && p.dataType() != DataType.BYTES);
    }
}
