// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.base.Experimental;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Pre- and postprocessing on V1 and V2 bodies as JSON, with the headers of the request, like KServe's Python
 * transformers. A gRPC call is converted to the equivalent V2 body. The predictor may be of any kind. A jar offers an
 * implementation by naming its class in {@code META-INF/services/io.nereid.transform.JsonTransformer}. Threads,
 * failures and life cycle are those of a {@link Transformer}.
 *
 * <p>JSON values are Map, List, String, Boolean, Long, Double and null; the result of a step may also contain any
 * Number, CharSequence, Iterable or array. The result of {@link #preprocess} is sent as V1 when it has
 * {@code instances}, as V2 when it has {@code inputs} with a {@code datatype}, and otherwise in the protocol of the
 * request.
 *
 * <pre>{@code
 * public final class Uppercase implements JsonTransformer {
 *     public Object preprocess(Object payload, Map<String, String> headers) {
 *         return Map.of("instances", tokens((Map<?, ?>) payload));
 *     }
 * }
 * }</pre>
 */
@Experimental
public interface JsonTransformer {
    /** As {@link Transformer#start}. */
    default void start(Transformer.Settings settings) throws Exception {}

    /**
     * Makes the body for the predictor from a client's body.
     *
     * @param payload the client's body
     * @param headers the headers of the request, with names in lower case; the first value of each
     */
    default @Nullable Object preprocess(Object payload, Map<String, String> headers) throws Exception {
        return payload;
    }

    /**
     * Makes the body for the client from the predictor's body. Not called for an error of the predictor, which the
     * client receives unchanged.
     *
     * @param result the predictor's body
     * @param headers the headers of the request
     */
    default @Nullable Object postprocess(Object result, Map<String, String> headers) throws Exception {
        return result;
    }

    /** As {@link Transformer#close}. */
    default void close() throws Exception {}
}
