// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2.memory;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.Consumer;

/**
 * The inputs of one request that lie in memory of GPUs: their tensors, whose content is not defined before {@link #fetch}
 * has copied it. Retains the regions until then, or until {@link #close}. Used by one thread at a time.
 */
public final class CudaInputs implements AutoCloseable {
    private record Input(Tensor tensor, SharedRegion.CudaRegion region, long offset, String model) {
        void copy() {
            region.memory().read(offset, tensor.region(), tensor.offset(), tensor.byteLength());
            if (!tensor.dataType().isFixedSize()) {
                RawTensors.check(
                        tensor.name(),
                        tensor.shape().elementCount(),
                        tensor.region(),
                        tensor.offset(),
                        tensor.byteLength(),
                        model);
            }
        }
    }

    private List<Input> inputs = List.of();

    public boolean isEmpty() {
        return inputs.isEmpty();
    }

    /** Adds an input. Takes over a reference of the region, and one of the tensor. */
    void add(Tensor tensor, SharedRegion.CudaRegion region, long offset, String model) {
        if (inputs.isEmpty()) {
            inputs = new ArrayList<>(2);
        }
        inputs.add(new Input(tensor.retain(), region, offset, model));
    }

    /** The thread of the GPU that has the first input. There is an input. */
    public Executor thread() {
        return inputs.get(0).region.thread();
    }

    /**
     * Copies the inputs on a thread that may block, then calls one of the two there. If that thread has ended,
     * {@code failed} is called at once.
     *
     * @param thread {@link #thread}, or that of an earlier request that this one must not overtake
     * @param ready when the tensors have their content
     * @param failed when an input is not valid, or a GPU is lost
     */
    public void fetch(Executor thread, Runnable ready, Consumer<ServingException> failed) {
        try {
            thread.execute(() -> {
                try {
                    inputs.forEach(Input::copy);
                } catch (RuntimeException | OutOfMemoryError e) {
                    close();
                    failed.accept(ServingException.from(e));
                    return;
                }
                close();
                ready.run();
            });
        } catch (RejectedExecutionException e) {
            close();
            failed.accept(ServingException.of(
                    ErrorCode.UNAVAILABLE, "the server is shutting down", "retry at another server"));
        }
    }

    @Override
    public void close() {
        for (Input input : inputs) {
            input.region.release();
            input.tensor.close();
        }
        inputs = List.of();
    }
}
