// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Steps before and after a model, on the bodies of V1 and V2 as JSON, and with the headers of the request, as KServe's
 * transformers have them; a call of gRPC comes as the body of V2 that says the same. The predictor may be anything. A jar offers one by naming its class in
 * {@code META-INF/services/io.nereid.transform.JsonTransformer}. All else is as for a {@link Transformer}.
 *
 * <p>JSON is Map, List, String, Boolean, Long, Double and null; what the steps give may have any Number, CharSequence, Iterable
 * and arrays too. What {@link #preprocess} gives is sent in V1 when it has {@code instances}, in V2 when it has {@code inputs}
 * with a {@code datatype}, and else in the protocol of the request.
 */
public interface JsonTransformer {
    /** As {@link Transformer#start}. */
    default void start(Transformer.Settings settings) throws Exception {}

    /**
     * Makes what the predictor is asked with.
     *
     * @param payload the body
     * @param headers the request's, names in lower case; the first value of each
     */
    default @Nullable Object preprocess(Object payload, Map<String, String> headers) throws Exception {
        return payload;
    }

    /**
     * Makes what the client is answered with; not called for what the predictor refuses, which is answered as it is.
     *
     * @param result the predictor's body
     * @param headers of the request
     */
    default @Nullable Object postprocess(Object result, Map<String, String> headers) throws Exception {
        return result;
    }

    /** As {@link Transformer#close}. */
    default void close() throws Exception {}
}
