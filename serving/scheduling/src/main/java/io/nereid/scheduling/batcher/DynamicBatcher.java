// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.queue.BatchBuilder;
import io.nereid.scheduling.queue.RequestQueue;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.BatchSizePolicy;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import java.util.concurrent.CompletionStage;

/**
 * The dynamic batcher: joins queued jobs into batches, by priority level and within a level in arrival order. A batch
 * is closed when a preferred size is reached, when the next job does not fit, or when the oldest job has waited for the
 * maximum queue delay. Without a queue delay, a free instance takes what is queued at that moment. While all instances
 * are busy, batches grow.
 *
 * <p>Of {@link BatchSizePolicy} it implements the part that concerns the queue: it splits requests that are larger than
 * the maximum batch size, and limits the number of enqueued batches. A request that fits into one batch is never split.
 *
 * <p>Thread-safe: one short lock, which is not held while a job runs or ends.
 */
public final class DynamicBatcher implements Scheduler {
    private final RequestQueue queue;

    /**
     * Creates a batcher with the settings in {@code config.batching()}, or {@link Batching#EAGER} if that is null.
     * {@code pool} provides threads, timer and clock and must outlive the batcher.
     */
    public DynamicBatcher(ModelConfig config, BatchRunner runner, DeviceExecutor pool, SchedulerOptions options) {
        DynamicBatching batching = config.batching() == null ? DynamicBatching.EAGER : config.batching();
        queue = new RequestQueue(
                config,
                BatchBuilder.of(config, batching, runner, options.strategy()),
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
