// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tflite;

import io.nereid.tensor.DataType;
import java.util.List;
import java.util.stream.Stream;

/**
 * What one signature takes and gives. Immutable.
 *
 * @param key its name in the file; empty when the file has none
 * @param inputs in the file's order
 * @param outputs likewise
 */
record SignaturePorts(String key, List<Port> inputs, List<Port> outputs) {
    /** Whether all of it is of one row, and rows of it can be put one behind the other. */
    boolean single() {
        return !inputs.isEmpty()
                && Stream.concat(inputs.stream(), outputs.stream())
                        .allMatch(p -> p.shape().rank() > 1 && p.shape().dim(0) == 1 && p.dataType() != DataType.BYTES);
    }
}
