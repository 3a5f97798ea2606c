// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.Experimental;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.ModelConfig;
import org.jspecify.annotations.Nullable;

/**
 * A custom batching strategy (Triton: custom batching): decides, in addition to the configured limits, whether one more
 * request may join the batch that is being built.
 *
 * <pre>{@code
 * final class AtMostBytes implements BatchStrategy {
 *     public Object begin() { return new long[1]; }
 *     public boolean include(InferenceJob job, Object state) {
 *         long[] bytes = (long[]) state;
 *         job.request().inputs().forEach(t -> bytes[0] += t.byteLength());
 *         return bytes[0] <= 1 << 20;
 *     }
 *     public void end(Object state) {}
 * }
 * }</pre>
 *
 * <p>A strategy belongs to one model. Its methods are called by one thread at a time, while the model's queue is
 * locked; they must be quick and must not call the scheduler. An exception is logged and counts as {@code false}.
 */
@Experimental
public interface BatchStrategy extends AutoCloseable {
    /** Called when a new batch is started. The result is passed to the other methods as the state of that batch. */
    @Nullable Object begin();

    /**
     * Returns whether {@code job} may join the batch. Also called for the first job of a batch, so that the strategy
     * can count it; that job is part of the batch whatever the result, alone after {@code false}. {@code false} closes
     * the batch.
     *
     * @param job must not be ended, changed or retained
     */
    boolean include(InferenceJob job, @Nullable Object state);

    /**
     * Called when the batch is closed, possibly with fewer jobs than were included (at a preferred size), or when the
     * waiting jobs have changed and the batch is built again from the start.
     */
    void end(@Nullable Object state);

    /** Called when the model's scheduler has ended. */
    @Override
    default void close() {}

    /** Creates strategies; found by {@link java.util.ServiceLoader}. Implementations are thread-safe. */
    interface Provider {
        /** Returns the name by which a model's configuration selects this provider. */
        String name();

        /**
         * Creates a strategy for one model.
         *
         * @throws io.nereid.base.ServingException when the strategy does not support the configuration
         */
        BatchStrategy open(ModelConfig config);
    }
}
