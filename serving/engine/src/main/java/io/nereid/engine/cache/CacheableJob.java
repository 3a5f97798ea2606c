// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.cache;

import io.nereid.spi.InferenceJob;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;

/** A job whose response may come from the response cache, or is stored there after it was computed. */
public interface CacheableJob extends InferenceJob {
    /** Completes the job with a cached response that was found within {@code lookupNanos}; owns the outputs. */
    void cached(List<Tensor> outputs, Map<String, Object> parameters, long lookupNanos);

    /** Sets the writer that stores the computed response. */
    void cacheWriter(ResponseCacheWriter writer);
}
