// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

import io.nereid.spi.config.ModelConfig;

/**
 * A loaded version that takes requests: a model with its scheduler, or an ensemble. TensorFlow Serving's word.
 * Implementations are thread-safe and never block.
 */
public interface Servable {
    /** The inputs, outputs and signatures, as clients see them. */
    ModelMetadata metadata();

    /** The complete configuration of the version. */
    ModelConfig config();

    /** The servable's own estimate of the memory it holds, in bytes; -1 when unknown. */
    long memoryBytes();

    /**
     * Queues a job. The servable ends it exactly once, possibly before this method returns. When this method throws,
     * the job stays with the caller, which must end it.
     *
     * @throws io.nereid.base.ServingException UNAVAILABLE (draining), RESOURCE_EXHAUSTED (queue full) or
     *     DEADLINE_EXCEEDED
     */
    void submit(InferenceJob job);
}
