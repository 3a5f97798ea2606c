// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.java;

import io.nereid.backend.ModelRequest;
import io.nereid.tensor.Tensor;
import java.util.List;

/**
 * A model written in Java that executes requests instead of batched tensors, because it is decoupled (any number of
 * responses to a request, also after the call), returns response parameters, or reschedules requests. The contract of
 * {@link JavaModel} applies, except that {@link #run} is not called.
 *
 * <pre>{@code
 * public final class CountTo implements JavaRequestModel {
 *     public List<TensorSpec> inputs() { return List.of(new TensorSpec("n", DataType.INT32, Shape.of(1))); }
 *     public List<TensorSpec> outputs() { return List.of(new TensorSpec("i", DataType.INT32, Shape.of(1))); }
 *     public boolean decoupled() { return true; }
 *     public void execute(List<ModelRequest> requests) {
 *         for (ModelRequest r : requests) {
 *             int n = r.request().inputs().get(0).buffer().getInt();
 *             for (int i = 1; i <= n && !r.cancelled(); i++) {
 *                 Tensor t = Tensor.allocate("i", DataType.INT32, Shape.of(1));
 *                 t.buffer().putInt(i);
 *                 r.respond(List.of(t), Map.of("of", (long) n));
 *             }
 *             r.finish();
 *         }
 *     }
 * }
 * }</pre>
 *
 * <p>{@link #execute} is called concurrently by as many threads as the configuration has instances.
 */
public interface JavaRequestModel extends JavaModel {
    /** Returns whether a request may have any number of responses. The configuration can set this too. */
    default boolean decoupled() {
        return false;
    }

    /**
     * Executes requests. The model must end each request exactly once, with {@link ModelRequest#complete},
     * {@link ModelRequest#finish}, {@link ModelRequest#fail} or {@link ModelRequest#reschedule}; a decoupled model may
     * do that after the call, on any thread.
     *
     * @param requests at least one; with the batch dimension when {@link #maxBatchSize} is positive
     * @throws Exception fails every request that has not ended: with a {@link io.nereid.base.ServingException}
     *     itself, with INTERNAL for any other
     */
    void execute(List<ModelRequest> requests) throws Exception;

    /** Not called. */
    @Override
    default List<Tensor> run(List<Tensor> inputs, List<String> outputs) {
        throw new UnsupportedOperationException("this model executes requests");
    }
}
