// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.base.ServingException;
import io.nereid.scheduling.objective.ObjectiveStatus;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.ModelConfig;
import java.util.concurrent.CompletionStage;
import org.jspecify.annotations.Nullable;

/**
 * The scheduler of one servable: queues its jobs, rejects them when the queue is full or their deadline has passed, and
 * passes them to a {@link BatchRunner} in batches.
 *
 * <pre>{@code
 * DeviceExecutor pool = new DeviceExecutor("cpu", 4);
 * Scheduler scheduler = SchedulerFactory.create(config, runner, pool, SchedulerOptions.DEFAULT);
 * scheduler.submit(job); // the runner completes or fails the job later, on a thread of the pool
 * scheduler.close();
 * scheduler.drained().thenRun(pool::close);
 * }</pre>
 *
 * <p>Implementations are thread-safe. No method blocks, except for a run that {@link #submit} may execute on the
 * caller's thread (see {@link InlinePolicy}).
 */
public interface Scheduler extends AutoCloseable {
    /**
     * Accepts a job, which then ends exactly once, possibly on this thread before this method returns. When this method
     * throws instead, the job has not ended, has no action on cancellation, and still belongs to the caller.
     *
     * @throws io.nereid.base.ServingException UNAVAILABLE when the queue is full or closed, DEADLINE_EXCEEDED when the
     *     job's deadline has passed, CANCELLED when the client has cancelled the request
     */
    void submit(InferenceJob job);

    /**
     * Returns the error if {@link #submit} would refuse a job because of overload, and counts it as arrived; null if it
     * would accept the job. For a job of which only a later part will be submitted, such as a step of an ensemble.
     */
    default @Nullable ServingException refusal(InferenceJob job) {
        return null;
    }

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

    /**
     * Applies the batching and queue settings of another configuration while the queue is in use: the next batch follows them, and no
     * queued job is lost; one that is larger than the new maximum batch size runs alone. The number of instances is not among them
     * ({@link #instances(int)}). Does not block.
     *
     * @return false, without any change, when a setting differs that cannot change while the model serves
     */
    default boolean configure(ModelConfig next) {
        return false;
    }

    /** Returns what the scheduler does to keep the model's latency objective; null without an objective. */
    default @Nullable ObjectiveStatus objective() {
        return null;
    }

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
