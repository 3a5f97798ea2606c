// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.tensor;

import java.util.ArrayList;
import java.util.List;

/**
 * Owns tensors until {@link #release} hands them over: a run that fails halfway closes the outputs that it has already
 * made. Confined to one thread.
 *
 * <pre>{@code
 * public List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
 *     try (TensorScope results = new TensorScope()) {
 *         for (String name : outputs) {
 *             ByteBuffer to = results.allocate(name, DataType.FP32, inputs.get(0).shape()).buffer();
 *             compute(name, inputs.get(0).buffer(), to);          // may throw
 *         }
 *         return results.release();
 *     }
 * }
 * }</pre>
 */
public final class TensorScope implements AutoCloseable {
    private List<Tensor> tensors = new ArrayList<>(4);

    /** Creates a scope without tensors. */
    public TensorScope() {}

    /** As {@link Tensor#allocate}; the scope owns the tensor. */
    public Tensor allocate(String name, DataType dataType, Shape shape) {
        return add(Tensor.allocate(name, dataType, shape));
    }

    /** Takes over a tensor, and returns it. */
    public Tensor add(Tensor tensor) {
        tensors.add(tensor);
        return tensor;
    }

    /** The tensors that were added, in that order, which the caller owns from here on. The scope is empty then. */
    public List<Tensor> release() {
        List<Tensor> released = tensors;
        tensors = List.of();
        return released;
    }

    /** Closes the tensors that were not released. */
    @Override
    public void close() {
        Tensor.closeAll(tensors);
        tensors = List.of();
    }
}
