// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelMetadata.Signature;
import java.util.List;
import java.util.Map;

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

    /**
     * What the model can be asked for besides its default, by name, when it is more than one thing. May also hold
     * {@code serving_default} to say more of the default one than {@link #config} does; the inputs and outputs must then
     * be equal to those. Shapes are as in {@link #config}, without the batch dimension where it is batched.
     */
    default Map<String, Signature> signatures() {
        return Map.of();
    }

    /**
     * Which signature answers a request that names none but has parameters: one of {@link #signatures}, or empty for the
     * default one. For models whose answers clients may choose so, as {@code output_margin} does of trees. Quick, on any thread.
     *
     * @param parameters of the request; values are Boolean, Long, Double or String
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT for a value that means nothing
     */
    default String signature(Map<String, Object> parameters) {
        return "";
    }

    /**
     * A unit of concurrency for one signature.
     *
     * @param signature a key of {@link #signatures} other than {@code serving_default}; runs get its inputs, in its
     *     order, and are asked for its outputs
     */
    default Invocation newInvocation(String signature) {
        throw new UnsupportedOperationException("this model has one signature");
    }

    /** A unit of concurrency; the engine makes at most {@code config().instances()} of them. */
    Invocation newInvocation();

    /** Whether the model wants requests now, where models have a say in that. Quick, on any thread. */
    default boolean ready() {
        return true;
    }

    /** The model's own figures as they are now. Quick, on any thread. */
    default List<ModelMetric> metrics() {
        return List.of();
    }

    /** Memory held outside the heap, in bytes, as good an estimate as there is; -1 when unknown. */
    long memoryBytes();

    @Override
    void close();
}
