// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import io.nereid.spi.ModelConfig;

/**
 * A loaded model: weights shared by all its invocations. Thread-safe. {@link #close} comes after the last invocation is
 * closed, and returns the model's memory to the machine.
 */
public interface BackendModel extends AutoCloseable {
    /**
     * The configuration with everything filled in: platform, backend, inputs and outputs in the model's order,
     * {@code maxBatchSize >= 0}, batching, {@code instances >= 1}.
     */
    ModelConfig config();

    /** What the engine may assume of runs. */
    IoTraits traits();

    /** A unit of concurrency; the engine makes at most {@code config().instances()} of them. */
    Invocation newInvocation();

    /** Memory held outside the heap, in bytes, as good an estimate as there is; -1 when unknown. */
    long memoryBytes();

    @Override
    void close();
}
