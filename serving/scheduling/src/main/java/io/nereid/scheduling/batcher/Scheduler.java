// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import io.nereid.base.ServingException;
import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.InitialStateFiles;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.ModelConfig;
import java.util.concurrent.CompletionStage;

/**
 * The scheduler of one servable: queues its jobs, rejects them when the queue is full or their deadline has passed, and
 * passes them to a {@link BatchRunner} in batches.
 *
 * <pre>{@code
 * DeviceExecutor pool = new DeviceExecutor("cpu", 4);
 * Scheduler scheduler = Scheduler.of(config, runner, pool, SchedulerOptions.DEFAULT);
 * scheduler.submit(job); // the runner completes or fails the job later, on a thread of the pool
 * scheduler.close();
 * scheduler.drained().thenRun(pool::close);
 * }</pre>
 *
 * <p>Implementations are thread-safe. No method blocks, except for a run that {@link #submit} may execute on the
 * caller's thread (see {@link SchedulerOptions.Inline}).
 */
public interface Scheduler extends AutoCloseable {
    /**
     * Creates the scheduler that a configuration selects: sequence batcher, dynamic batcher, or one request at a time.
     * {@code pool} provides threads, timer and clock and must outlive the scheduler.
     *
     * @throws ServingException when the configuration cannot be scheduled, such as INVALID_ARGUMENT for an instance
     *     that requires more of a rate limiter resource than exists
     */
    static Scheduler of(ModelConfig config, BatchRunner runner, DeviceExecutor pool, SchedulerOptions options) {
        return of(config, runner, pool, options, InitialStateFiles.NONE);
    }

    /** As above, for a model whose sequences may start with states that are read from files. */
    static Scheduler of(
            ModelConfig config,
            BatchRunner runner,
            DeviceExecutor pool,
            SchedulerOptions options,
            InitialStateFiles initialStates) {
        if (config.sequence() != null) {
            return new SequenceBatcher(config, runner, pool, options, initialStates);
        }
        return config.batching() != null
                ? new DynamicBatcher(config, runner, pool, options)
                : new DirectScheduler(config, runner, pool, options);
    }

    /**
     * Accepts a job, which then ends exactly once, possibly on this thread before this method returns. When this method
     * throws instead, the job has not ended, has no action on cancellation, and still belongs to the caller.
     *
     * @throws io.nereid.base.ServingException UNAVAILABLE when the queue is full or closed, DEADLINE_EXCEEDED when the
     *     job's deadline has passed, CANCELLED when the client has cancelled the request
     */
    void submit(InferenceJob job);

    /** Returns the number of jobs that wait in the queue. */
    int queued();

    /** Returns the number of model instances, which is the maximum number of concurrent runs. */
    int instances();

    /**
     * Changes the number of instances while the queue is in use. New instances accept runs immediately. Instances
     * beyond {@code count} get no more runs and are {@link BatchRunner#retired} after their current run. Instances
     * beyond the configured ones require the resources of the last instance group. Does not block.
     *
     * @param count at least 1
     */
    void instances(int count);

    /** Returns the number of runs in progress. */
    int running();

    /** Returns the number of runs started since the scheduler was created. */
    long batches();

    /**
     * Stops accepting jobs; queued jobs run without further queue delay. Does not block. Idempotent.
     */
    @Override
    void close();

    /** Returns a stage that completes when the last job has ended after {@link #close}. */
    CompletionStage<Void> drained();
}
