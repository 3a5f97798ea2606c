// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelConfig;
import java.util.concurrent.CompletionStage;

/**
 * The queue of one servable: takes jobs, refuses them when full or late, and hands them on in runs. Implementations are
 * thread-safe; no method blocks but for a run that {@link #submit} may do on the caller's thread (see
 * {@link SchedulerOptions.Inline}).
 */
public interface Scheduler extends AutoCloseable {
    /**
     * The scheduler that a configuration asks for; {@code pool} gives threads, timer and clock and outlives it.
     *
     * @throws ServingException when the configuration cannot be served so, such as INVALID_ARGUMENT for an instance that
     *     asks for more of a resource than there is
     */
    static Scheduler of(ModelConfig config, BatchRunner runner, DevicePool pool, SchedulerOptions options) {
        return of(config, runner, pool, options, InitialStates.NONE);
    }

    /** As above, for a model whose sequences may begin with states from files. */
    static Scheduler of(
            ModelConfig config,
            BatchRunner runner,
            DevicePool pool,
            SchedulerOptions options,
            InitialStates initialStates) {
        if (config.sequence() != null) {
            return new SequenceBatcher(config, runner, pool, options, initialStates);
        }
        return config.batching() != null
                ? new DynamicBatcher(config, runner, pool, options)
                : new DirectScheduler(config, runner, pool, options);
    }

    /**
     * Takes a job and sees to it that it ends once, possibly before this returns and on this thread; or throws and leaves
     * the job with the caller, not ended and without an action on cancellation.
     *
     * @throws io.nereid.base.ServingException UNAVAILABLE when the queue is full or closed, DEADLINE_EXCEEDED when the
     *     job comes too late, CANCELLED when its client has gone away
     */
    void submit(InferenceJob job);

    /** Jobs waiting now. */
    int queued();

    /** How many runs may go on at once. */
    int instances();

    /**
     * Changes the number of instances while the queue is in use: new ones run at once; those beyond {@code count} get no
     * more runs, and are {@link BatchRunner#retired} when theirs have ended. New instances ask for the resources of the
     * last group. Returns at once.
     *
     * @param count at least 1
     */
    void instances(int count);

    /** Runs under way now, at most the number of instances. */
    int running();

    /** Runs begun since the start. */
    long batches();

    /**
     * Accepts no more jobs; those that wait are run without further delay. Returns at once. Idempotent.
     */
    @Override
    void close();

    /** Completes when, after {@link #close}, the last job has ended. */
    CompletionStage<Void> drained();
}
