// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.cache;

import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;

/** Keeps the answer of a job. Called at most once, before the job gives up its inputs; must not throw. */
public interface ResponseCacheWriter {
    /** Copies what it keeps; the tensors stay with the caller. */
    void keep(List<Tensor> outputs, Map<String, Object> parameters);
}
