// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.spi.TensorSpec;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * Steps before and after a model, on tensors: V1, V2 and gRPC all reach them. A jar offers one by naming its class in
 * {@code META-INF/services/io.nereid.transform.Transformer}.
 *
 * <p>One object serves all requests of a revision, on many threads at once: implementations must be thread-safe. The steps may
 * wait, for a feature store for example; they run on threads of their own, of which there are as many as the service's
 * {@code containerConcurrency}, or some for each processor. What they throw ends the request: an
 * {@link IllegalArgumentException} is the client's fault (400, INVALID_ARGUMENT) and its text is told, a
 * {@link io.nereid.base.ServingException} has its own code, anything else is the transformer's (500, INTERNAL).
 *
 * <pre>{@code
 * public final class Words implements Transformer {
 *     public List<TensorSpec> inputs(List<TensorSpec> predictor) {
 *         return List.of(new TensorSpec("text", DataType.BYTES, Shape.of(-1)));
 *     }
 *
 *     public Payload preprocess(Payload request) {
 *         return Payload.of("input", vectors(request.texts("text")));   // float[][]
 *     }
 *
 *     public Payload postprocess(Payload answer, Payload request) {
 *         return Payload.of("flower", names(answer.longs("label")));    // String[]
 *     }
 * }
 * }</pre>
 */
public interface Transformer {
    /**
     * What a transformer is told when it starts. Immutable.
     *
     * @param modelName the name that clients use for the model
     * @param directory where its jar and the files beside it are; read only
     * @param config the service's {@code spec.transformer.nereid.config}
     */
    record Settings(String modelName, Path directory, Map<String, String> config) {}

    /** Called once before the first request; the service is not ready before it returns. What it throws is the reason. */
    default void start(Settings settings) throws Exception {}

    /**
     * What clients are to send, as the model's metadata tell it and as requests are read: in V1 names, types and shapes come
     * from here. Shapes are as clients see them, the batch dimension (-1) included.
     *
     * @param predictor what the predictor takes
     */
    default List<TensorSpec> inputs(List<TensorSpec> predictor) {
        return predictor;
    }

    /**
     * What clients get, as the model's metadata tell it.
     *
     * @param predictor what the predictor gives
     */
    default List<TensorSpec> outputs(List<TensorSpec> predictor) {
        return predictor;
    }

    /**
     * Makes what the predictor is asked with of what a client sent.
     *
     * @param request valid during the call
     */
    default Payload preprocess(Payload request) throws Exception {
        return request;
    }

    /**
     * Makes what a client is answered with of what the predictor answered; once for each answer of a model that gives many.
     *
     * @param answer valid during the call
     * @param request what the client had sent; valid during the call
     */
    default Payload postprocess(Payload answer, Payload request) throws Exception {
        return answer;
    }

    /** Called once after the last request, and when it could not start. */
    default void close() throws Exception {}
}
