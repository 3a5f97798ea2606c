// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backend;

import io.nereid.tensor.Tensor;
import java.util.List;
import java.util.Set;

/**
 * One instance of a loaded model: the unit of concurrency, as in Triton's instance groups. The engine runs at most one
 * batch at a time on an instance, on any of its threads, so an implementation needs no locks for {@link #run} and
 * {@link #execute}; {@link #cancel} alone may come from another thread while a run is under way. A model is called
 * either through {@link #run}, with one tensor per input for the whole batch, or through {@link #execute}, with the
 * single requests; {@link ModelTraits#takesRequests} decides which.
 *
 * <p>The tensors of runs, inputs and outputs, include the batch dimension where the model is batched
 * ({@code maxBatchSize > 0}): an input that the configuration describes as {@code [4]} arrives as {@code [rows, 4]}.
 *
 * <p>An instance of a model that adds 1 to every element of its FP32 input:
 *
 * <pre>{@code
 * public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
 *     Tensor in = inputs.get(0);                              // lent: not closed here
 *     try (TensorScope results = new TensorScope()) {         // closes what it still owns when the run fails
 *         ByteBuffer from = in.buffer();                      // little-endian, row-major
 *         ByteBuffer to = results.allocate("OUTPUT0", DataType.FP32, in.shape()).buffer();
 *         while (from.hasRemaining()) {
 *             to.putFloat(from.getFloat() + 1);
 *         }
 *         return results.release();                           // owned by the engine from here on
 *     }
 * }
 * }</pre>
 */
public interface ModelInstance extends AutoCloseable {
    /**
     * Runs the model on one batch.
     *
     * @param inputs one tensor for each model input that is present, in the order of the model's inputs. Optional
     *     inputs may be missing, so an implementation with optional inputs looks them up with {@link Tensor#find}. Types and shapes
     *     have been checked against the configuration; shapes include the batch dimension where the model is batched.
     *     The tensors are lent until this method returns. An output may share an input's memory through
     *     {@link Tensor#retainAs}
     * @param outputs names of the requested outputs, at least one
     * @return the requested outputs in that order, with their concrete shapes, which include the batch dimension where
     *     the model is batched; owned by the caller
     * @throws io.nereid.base.ServingException INVALID_ARGUMENT when the model rejects the input, CANCELLED after
     *     {@link #cancel}, else INTERNAL with the message of the inference library
     */
    List<Tensor> run(List<Tensor> inputs, List<String> outputs);

    /**
     * As {@link #run(List, List)}, and says how idle the machine is. A model that can use several threads for one run may use as
     * many more as are idle, so that a request on an idle machine is answered sooner; on a busy one, a thread for each run
     * answers most requests. Does not look at it by default. A decorator must pass it on.
     *
     * @param idleThreads threads of the device beside the one of this run that have nothing to do as the run begins, 0 or more; the
     *     next run may begin at any time
     */
    default List<Tensor> run(List<Tensor> inputs, List<String> outputs, int idleThreads) {
        return run(inputs, outputs);
    }

    /**
     * As {@link #run(List, List)}, of an instance on a GPU whose model has {@link ModelTraits#deviceTensors}. Each input is in memory of
     * the host or of the instance's own GPU, which {@link Tensor#deviceRegion} says; one on the GPU starts at a multiple of the
     * size of its elements, and is complete: no kernel that writes it is under way. Calls {@link #run(List, List)} by default, which suits a
     * model without the trait. A decorator must pass it on, or take the trait away.
     *
     * @param kept the outputs that the next model takes on this GPU. They, and only they, are worth returning in memory of
     *     the GPU, from {@link io.nereid.device.DeviceMemory#region}; each may be returned in memory of the host as well, such as when
     *     the GPU has no memory for it. The engine copies what else is returned on the GPU to the host
     */
    default List<Tensor> runOnDevice(List<Tensor> inputs, List<String> outputs, Set<String> kept) {
        return run(inputs, outputs);
    }

    /**
     * Runs the model on single requests; called instead of {@link #run} where {@link ModelTraits#takesRequests} is true.
     * Every request must be ended exactly once: before this method returns or, by a decoupled model and after
     * {@link ModelRequest#answerLater}, at any later time on any thread. The engine uses the instance for the next batch as soon as this method returns.
     *
     * @param requests at least one. The tensors of a batched model have their batch dimension, and all requests
     *     together have at most {@code maxBatchSize} rows
     * @throws io.nereid.base.ServingException as {@link #run}; fails every request that has not ended yet
     */
    default void execute(List<ModelRequest> requests) {
        throw new UnsupportedOperationException("this model takes batches of tensors");
    }

    /**
     * Interrupts the run that is under way if {@link ModelTraits#cancellable} is true; otherwise, and by default, does
     * nothing. Called from any thread, also when no run is under way.
     */
    default void cancel() {}

    /** Frees the instance. Called once, when no run is under way. Does nothing by default. */
    @Override
    default void close() {}
}
