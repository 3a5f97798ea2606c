// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.ensemble;

import io.nereid.base.ServingException;
import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * A response, or the failure, that an {@link EnsembleExecution} delivers to its client. Guarded by the execution's
 * lock until it is delivered.
 */
final class EnsembleResponse {
    final List<Tensor> outputs;
    final Map<String, Object> parameters;
    final @Nullable ServingException failure;

    /** Whether it is the last one. */
    boolean last;

    EnsembleResponse(List<Tensor> outputs, Map<String, Object> parameters, @Nullable ServingException failure) {
        this.outputs = outputs;
        this.parameters = parameters;
        this.failure = failure;
        this.last = failure != null;
    }
}
