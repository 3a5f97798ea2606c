// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceRequest;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;

/**
 * One request as a model sees it that takes requests. The model ends it exactly once, with {@link #complete},
 * {@link #finish}, {@link #fail} or {@link #reschedule}; until then its inputs may be read, also after
 * {@link Invocation#execute} has returned. Answers may be given on any thread, one call at a time.
 */
public interface ModelRequest {
    /** The request: its inputs in the order of the model's, optional ones left out, lent until it ends. */
    InferenceRequest request();

    /** Names of the wanted outputs, at least one. */
    List<String> outputs();

    /** Whether the client has gone away; the request is still to be ended. */
    boolean cancelled();

    /**
     * One answer, more may follow: wanted outputs with the batch dimension, owned by the callee.
     *
     * @throws io.nereid.base.ServingException FAILED_PRECONDITION when the model is not decoupled; the request is failed
     */
    void respond(List<Tensor> outputs, Map<String, Object> parameters);

    /** The last, or only, answer. */
    void complete(List<Tensor> outputs, Map<String, Object> parameters);

    /** Nothing more follows; for decoupled models. */
    void finish();

    /** The request came to nothing. */
    void fail(ServingException e);

    /** Asks to see the request again in a later batch; for models of iterative sequences. Ends it for this time. */
    void reschedule();
}
