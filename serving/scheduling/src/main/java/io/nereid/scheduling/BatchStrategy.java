// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelConfig;
import org.jspecify.annotations.Nullable;

/**
 * A batching rule of the user's own, asked beside the configured ones: whether one more request may join the batch that
 * is forming. One strategy serves one model; its methods are called by one thread at a time, while the model's queue is
 * locked, and so must be quick and must not call the scheduler. What they throw is logged and counts as a "no".
 */
public interface BatchStrategy extends AutoCloseable {
    /** A batch begins to form: what the strategy wants to remember about it, handed back to the other methods. */
    @Nullable Object begin();

    /**
     * Whether {@code job} joins. It is asked about the first job of a batch too, so that the strategy can count it, but
     * a first job runs whatever the answer, alone if need be. After a "no" the batch goes as it is.
     *
     * @param job not to be ended, changed or kept
     */
    boolean include(InferenceJob job, @Nullable Object state);

    /**
     * The batch has been cut, perhaps shorter than what was included (a preferred size), or its jobs have changed and it
     * begins anew.
     */
    void end(@Nullable Object state);

    /** The model's scheduler has ended. */
    @Override
    default void close() {}

    /** Where strategies come from: found by {@link java.util.ServiceLoader}. Implementations are thread-safe. */
    interface Provider {
        /** The name by which a model's configuration asks for it. */
        String name();

        /**
         * A strategy for one model.
         *
         * @throws io.nereid.base.ServingException when the configuration asks for what it cannot do
         */
        BatchStrategy open(ModelConfig config);
    }
}
