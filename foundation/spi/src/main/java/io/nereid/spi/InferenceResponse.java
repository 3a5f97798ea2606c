// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;

/**
 * One response of a model. Immutable except for the ownership of the outputs, which belong to the holder of the
 * response: it closes the response once it has read them.
 *
 * @param servable the version that computed the response
 * @param id the request's id, or empty
 * @param outputs the requested outputs in the requested order, or all outputs in the model's order. Shapes include the
 *     batch dimension where the model is batched
 * @param parameters response parameters; values are Boolean, Long, Double or String
 */
public record InferenceResponse(ServableId servable, String id, List<Tensor> outputs, Map<String, Object> parameters)
        implements AutoCloseable {
    /** Closes all outputs. */
    @Override
    public void close() {
        Tensor.closeAll(outputs);
    }
}
