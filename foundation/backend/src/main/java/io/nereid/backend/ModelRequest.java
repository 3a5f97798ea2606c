// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceRequest;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;

/**
 * One request, as {@link ModelInstance#execute} receives it. The model ends it exactly once, with {@link #complete},
 * {@link #finish}, {@link #fail} or {@link #reschedule}; until then the model may read its inputs, also after
 * {@code execute} has returned. Responses may be sent from any thread, one call at a time.
 */
public interface ModelRequest {
    /**
     * The request. Its inputs are in the model's order, without optional inputs that the client left out, and with the
     * batch dimension where the model is batched; they are lent to the model until it ends the request.
     */
    InferenceRequest request();

    /** Names of the requested outputs, at least one. */
    List<String> outputs();

    /** Whether the client has cancelled the request. The model must still end it. */
    boolean cancelled();

    /**
     * Sends one response, which more may follow.
     *
     * @param outputs requested outputs, with the batch dimension where the model is batched; the callee owns them from here on, whatever happens
     * @param parameters response parameters; values are Boolean, Long, Double or String
     * @throws io.nereid.base.ServingException FAILED_PRECONDITION when the model is not decoupled; the request has
     *     then failed
     */
    void respond(List<Tensor> outputs, Map<String, Object> parameters);

    /** Sends the last, or only, response and ends the request; parameters as for {@link #respond}. */
    void complete(List<Tensor> outputs, Map<String, Object> parameters);

    /** Ends the request without a further response; for decoupled models. */
    void finish();

    /**
     * Announces that the request ends after {@code execute} has returned, although the model is not decoupled; called
     * before it returns. Cancellation by the client then ends the request at once, and later calls have no effect.
     */
    default void answerLater() {}

    /** Ends the request with an error. */
    void fail(ServingException e);

    /** Ends the request for this batch and asks for it again in a later one; for models of iterative sequences. */
    void reschedule();
}
