// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.perf.input;

import java.util.List;

/**
 * What one request sends. Immutable.
 *
 * @param inputs the inputs
 * @param outputs the names of the requested outputs; empty for all
 * @param signature the name of the requested signature; empty for the default one
 */
public record RequestSample(List<TensorData> inputs, List<String> outputs, String signature) {
    /** A request for all outputs of the default signature. */
    public RequestSample(List<TensorData> inputs) {
        this(inputs, List.of(), "");
    }
}
