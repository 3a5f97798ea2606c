// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.base.access.Caller;
import io.nereid.spi.config.ModelConfig;

/**
 * The inference API of the server: protocols, ensembles and backends call models through it. Implementations are
 * thread-safe and never block.
 *
 * <pre>{@code
 * InferenceCall call = engine.infer(request, new ResponseSink() {
 *     public void next(InferenceResponse response, boolean last) {
 *         try (response) {
 *             read(response.outputs());
 *         }
 *     }
 *
 *     public void fail(ServingException e) {
 *         LOG.warn(e.describe());
 *     }
 * });
 * call.cancel();                                     // when the response is no longer needed
 * }</pre>
 */
public interface InferenceEngine {
    /**
     * Starts a request. The engine owns the request's inputs from here on, on success and on failure. It ends the sink
     * exactly once, possibly before this method returns and on the calling thread. Errors of the request or the model
     * are reported to the sink, never thrown.
     *
     * @return a handle that cancels the request
     */
    InferenceCall infer(InferenceRequest request, ResponseSink sink);

    /**
     * Returns the inputs, outputs and signatures of a model.
     *
     * @throws io.nereid.base.ServingException NOT_FOUND for an unknown model or version, UNAVAILABLE when it is not
     *     loaded
     */
    ModelMetadata metadata(ModelRef model);

    /**
     * Returns the complete configuration with which a model is served.
     *
     * @throws io.nereid.base.ServingException NOT_FOUND for an unknown model or version, UNAVAILABLE when it is not
     *     loaded
     */
    ModelConfig config(ModelRef model);

    /** A view of this engine whose requests are those of a caller. */
    default InferenceEngine onBehalfOf(Caller caller) {
        InferenceEngine engine = this;
        return new InferenceEngine() {
            @Override
            public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
                return engine.infer(request.from(caller), sink);
            }

            @Override
            public ModelMetadata metadata(ModelRef model) {
                return engine.metadata(model);
            }

            @Override
            public ModelConfig config(ModelRef model) {
                return engine.config(model);
            }
        };
    }
}
