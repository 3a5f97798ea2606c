// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.client.infer;

import java.util.List;

/**
 * What a server says of a model. Immutable.
 *
 * @param name its name
 * @param versions its available versions
 * @param platform the framework, as the server names it
 * @param inputs the inputs
 * @param outputs the outputs
 */
public record ModelMetadataResponse(
        String name,
        List<String> versions,
        String platform,
        List<TensorMetadata> inputs,
        List<TensorMetadata> outputs) {
    public ModelMetadataResponse {
        versions = List.copyOf(versions);
        inputs = List.copyOf(inputs);
        outputs = List.copyOf(outputs);
    }

    /**
     * An input or output. Immutable.
     *
     * @param name its name
     * @param dataType its type, as the server names it; {@link TensorDataType#of} reads those of the protocol
     * @param shape its dimensions; -1 is of any size
     */
    public record TensorMetadata(String name, String dataType, List<Long> shape) {
        public TensorMetadata {
            shape = List.copyOf(shape);
        }
    }
}
