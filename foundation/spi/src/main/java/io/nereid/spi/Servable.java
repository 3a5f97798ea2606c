// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi;

/** A loaded version. Ensembles are servables too. Implementations are thread-safe and never block. */
public interface Servable {
    /** What it takes and gives. */
    ModelMetadata metadata();

    /** The complete configuration it was loaded with. */
    ModelConfig config();

    /** Memory held, in bytes, by its own estimate; -1 when unknown. */
    long memoryBytes();

    /**
     * Takes a job, or throws and leaves it with the caller.
     *
     * @throws io.nereid.base.ServingException UNAVAILABLE (draining), RESOURCE_EXHAUSTED (queue full) or
     *     DEADLINE_EXCEEDED
     */
    void submit(InferenceJob job);
}
