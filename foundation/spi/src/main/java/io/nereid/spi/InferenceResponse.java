// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;

/**
 * What a model answered. Immutable but for the ownership of its outputs: whoever holds the response owns them.
 *
 * @param servable the version that answered
 * @param id the request's id, or empty
 * @param outputs the tensors asked for, in the order asked for, or in the model's order
 * @param parameters values are Boolean, Long, Double or String
 */
public record InferenceResponse(ServableId servable, String id, List<Tensor> outputs, Map<String, Object> parameters)
        implements AutoCloseable {
    /** Gives up the outputs. */
    @Override
    public void close() {
        Tensor.closeAll(outputs);
    }
}
