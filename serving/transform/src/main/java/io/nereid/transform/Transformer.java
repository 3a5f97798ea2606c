// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.base.Experimental;
import io.nereid.spi.config.TensorSpec;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * Pre- and postprocessing on tensors, for V1, V2 and gRPC alike. A jar offers an implementation by naming its class in
 * {@code META-INF/services/io.nereid.transform.Transformer}.
 *
 * <p>One object serves all requests of a revision, on many threads at once: implementations must be thread-safe. The
 * steps may block, for example on a feature store: they run on threads of their own, as many as the service's
 * {@code containerConcurrency}, or a few for each processor. An exception ends the request: an
 * {@link IllegalArgumentException} is the client's error (400, INVALID_ARGUMENT) and its message is returned to the
 * client, a {@link io.nereid.base.ServingException} keeps its code, and any other exception is the transformer's error
 * (500, INTERNAL).
 *
 * <pre>{@code
 * public final class Words implements Transformer {
 *     public List<TensorSpec> inputs(List<TensorSpec> predictor) {
 *         return List.of(new TensorSpec("text", DataType.BYTES, Shape.of(-1)));
 *     }
 *
 *     public TensorMap preprocess(TensorMap request) {
 *         return TensorMap.of("input", vectors(request.texts("text")));   // float[][]
 *     }
 *
 *     public TensorMap postprocess(TensorMap answer, TensorMap request) {
 *         return TensorMap.of("flower", names(answer.longs("label")));    // String[]
 *     }
 * }
 * }</pre>
 */
@Experimental
public interface Transformer {
    /**
     * The settings that a transformer receives when it starts. Immutable.
     *
     * @param modelName the name that clients use for the model
     * @param directory the directory of the jar and of the files beside it; read-only
     * @param config the service's {@code spec.transformer.nereid.config}
     */
    record Settings(String modelName, Path directory, Map<String, String> config) {}

    /**
     * Called once before the first request. The service is not ready before it returns. An exception makes the service
     * fail with its message.
     */
    default void start(Settings settings) throws Exception {}

    /**
     * The inputs that clients send, for the model's metadata and for the parsing of V1 requests, which takes names,
     * types and shapes from here. Shapes are as clients see them, including the batch dimension (-1).
     *
     * @param predictor the predictor's inputs
     */
    default List<TensorSpec> inputs(List<TensorSpec> predictor) {
        return predictor;
    }

    /**
     * The outputs that clients receive, for the model's metadata.
     *
     * @param predictor the predictor's outputs
     */
    default List<TensorSpec> outputs(List<TensorSpec> predictor) {
        return predictor;
    }

    /**
     * Makes the predictor's inputs from a client's request.
     *
     * @param request valid during the call
     */
    default TensorMap preprocess(TensorMap request) throws Exception {
        return request;
    }

    /**
     * Makes the client's response from the predictor's response. Called once for each response of a decoupled model.
     *
     * @param answer valid during the call
     * @param request the client's request; valid during the call
     */
    default TensorMap postprocess(TensorMap answer, TensorMap request) throws Exception {
        return answer;
    }

    /** Called once after the last request, and after a {@code start} that failed. */
    default void close() throws Exception {}
}
