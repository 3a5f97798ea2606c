// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;

/**
 * What a client wants computed. Immutable but for the ownership of its inputs: whoever holds the request owns them.
 *
 * @param model which model
 * @param id the client's id for the request, echoed; empty when none was given
 * @param inputs the tensors, in the client's order, under the model's names
 * @param outputs the outputs wanted, in the client's order; empty for all
 * @param parameters values are Boolean, Long, Double or String; never those the protocols define themselves
 * @param deadlineNanos when waiting for the answer is pointless, in nanoseconds of the server's clock;
 *     {@link Long#MAX_VALUE} for never
 * @param arrivedNanos when the request's head arrived, on the same clock
 */
public record InferenceRequest(
        ModelRef model,
        String id,
        List<Tensor> inputs,
        List<RequestedOutput> outputs,
        Map<String, Object> parameters,
        long deadlineNanos,
        long arrivedNanos) {
    /**
     * One wanted output.
     *
     * @param name the model's output
     * @param classes when positive, answer with the top classes instead of the values
     */
    public record RequestedOutput(String name, int classes) {}

    /** Gives up the inputs. */
    public void release() {
        Tensor.closeAll(inputs);
    }
}
