// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import io.nereid.tensor.Tensor;
import java.util.List;

/**
 * One unit of concurrency of a model: at most one run at a time, on any thread ({@link #cancel} from any other).
 */
public interface Invocation extends AutoCloseable {
    /**
     * Runs the model.
     *
     * @param inputs in the order of the model's inputs, optional ones left out, found by name; already checked against
     *     the configuration; lent for the length of the run. An output may share an input's memory through
     *     {@link Tensor#retainAs}
     * @param outputs names of the wanted outputs, at least one
     * @return the wanted outputs in that order, owned by the caller, with their concrete shapes
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT when the model refuses the input, CANCELLED after
     *     {@link #cancel}, else INTERNAL with the engine's message
     */
    List<Tensor> run(List<Tensor> inputs, List<String> outputs);

    /**
     * Runs the model on requests, for a model whose traits say so. Every request is ended once, during this call or, by
     * a decoupled model, on any thread after it; the instance is free again when this returns.
     *
     * @param requests at least one; those of a batched model have their batch dimension, and together at most
     *     {@code maxBatchSize} rows
     * @throws io.nereid.base.ServingException as {@link #run}; fails every request that has not ended yet
     */
    default void execute(List<ModelRequest> requests) {
        throw new UnsupportedOperationException("this model takes batches of tensors");
    }

    /** Stops the run under way, if there is one and the engine can; otherwise does nothing. Any thread. */
    void cancel();

    @Override
    void close();
}
