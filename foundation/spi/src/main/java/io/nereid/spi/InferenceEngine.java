// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

/** The door for inference. Implementations are thread-safe and never block. */
public interface InferenceEngine {
    /**
     * Starts a request. The engine owns the request's inputs from here on, whatever happens, and ends the sink exactly
     * once, possibly before this returns and on this thread. Never throws for a fault of the request or the model.
     */
    Call infer(InferenceRequest request, ResponseSink sink);

    /**
     * What a model takes and gives.
     *
     * @throws io.nereid.base.ServingException NOT_FOUND or UNAVAILABLE
     */
    ModelMetadata metadata(ModelRef model);

    /**
     * The complete configuration a model is served with.
     *
     * @throws io.nereid.base.ServingException NOT_FOUND or UNAVAILABLE
     */
    ModelConfig config(ModelRef model);

    /** A request under way. */
    interface Call {
        /**
         * The client no longer wants the answer: queued work is dropped, a running one is stopped where the backend can.
         * The sink still ends, with CANCELLED unless the answer was faster. Idempotent, any thread.
         */
        void cancel();
    }
}
