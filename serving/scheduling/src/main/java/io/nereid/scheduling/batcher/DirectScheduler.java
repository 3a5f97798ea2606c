// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling.batcher;

import io.nereid.scheduling.BatchRunner;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.queue.BatchBuilder;
import io.nereid.scheduling.queue.RequestQueue;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.config.ModelConfig;
import java.util.concurrent.CompletionStage;

/**
 * The scheduler of models without batching: runs each job alone, in arrival order, on the first free instance.
 * Thread-safe: one short lock, which is not held while a job runs or ends.
 */
public final class DirectScheduler implements Scheduler {
    private final RequestQueue queue;

    /** Creates a scheduler; {@code pool} provides threads, timer and clock and must outlive it. */
    public DirectScheduler(ModelConfig config, BatchRunner runner, DeviceExecutor pool, SchedulerOptions options) {
        queue = new RequestQueue(config, BatchBuilder.single(), false, runner, pool, options);
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
