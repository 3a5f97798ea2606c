// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.cache;

import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;

/**
 * Stores the response of a job in the cache. Called at most once, before the job closes its inputs, because the cache
 * key reads them; must not throw.
 */
public interface ResponseCacheWriter {
    /** Stores copies; the caller keeps the tensors. */
    void write(List<Tensor> outputs, Map<String, Object> parameters);
}
