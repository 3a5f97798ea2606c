// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.scheduling;

import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelConfig;
import java.util.concurrent.CompletionStage;

/** Runs jobs one by one, in the order they came, on as many instances as the model has. Thread-safe by a short lock. */
public final class DirectScheduler implements Scheduler {
    private final JobQueue queue;

    /** For a model with the given configuration; {@code pool} gives threads, timer and clock and outlives this. */
    public DirectScheduler(ModelConfig config, BatchRunner runner, DevicePool pool, SchedulerOptions options) {
        queue = new JobQueue(config, BatchForming.single(), false, runner, pool, options);
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
