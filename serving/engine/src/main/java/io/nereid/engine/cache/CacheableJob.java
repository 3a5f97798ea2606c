// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.cache;

import io.nereid.spi.InferenceJob;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;

/** A job whose answer may come from the response cache, and is kept there when it does not. */
public interface CacheableJob extends InferenceJob {
    /** Completes with an answer that was kept, found within {@code lookupNanos}; owns the outputs. */
    void cached(List<Tensor> outputs, Map<String, Object> parameters, long lookupNanos);

    /** Sets who keeps the answer. */
    void keeper(ResponseCacheWriter keeper);
}
