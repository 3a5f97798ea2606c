// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelConfig.Batching;
import java.util.concurrent.CompletionStage;

/**
 * Joins waiting jobs into batches. A batch is cut, in the order of the levels and in each level in the order the jobs
 * came, when a preferred size is reached, when the next job does not fit, or when the oldest job has waited for the queue
 * delay; with no delay, whatever waits when an instance is free. While all instances are busy, batches grow. Thread-safe
 * by a short lock.
 *
 * <p>Of {@link ModelConfig.Fit} it does what concerns the queue: it cuts requests that are larger than the model takes,
 * and bounds the number of batches that wait. A request of rows that the model takes at once is never cut.
 */
public final class DynamicBatcher implements Scheduler {
    private final JobQueue queue;

    /**
     * For a model with the given configuration, whose {@code batching} (or {@link Batching#EAGER}) it follows;
     * {@code pool} gives threads, timer and clock and outlives this.
     */
    public DynamicBatcher(ModelConfig config, BatchRunner runner, DevicePool pool, SchedulerOptions options) {
        Batching batching = config.batching() == null ? Batching.EAGER : config.batching();
        queue = new JobQueue(
                config,
                BatchForming.of(config, batching, runner, options.strategy()),
                batching.preserveOrdering(),
                runner,
                pool,
                options);
    }

    @Override
    public void submit(InferenceJob job) {
        queue.submit(job);
    }

    @Override
    public int instances() {
        return queue.instances();
    }

    @Override
    public void instances(int count) {
        queue.instances(count);
    }

    @Override
    public int queued() {
        return queue.queued();
    }

    @Override
    public int running() {
        return queue.running();
    }

    @Override
    public long batches() {
        return queue.batches();
    }

    @Override
    public void close() {
        queue.close();
    }

    @Override
    public CompletionStage<Void> drained() {
        return queue.drained();
    }
}
