// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.backend.BackendModel;
import io.nereid.base.Clock;
import io.nereid.scheduling.DevicePool;
import io.nereid.scheduling.DirectScheduler;
import io.nereid.scheduling.DynamicBatcher;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ServableId;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A loaded version on a backend: its metadata, its queue and its instances. Thread-safe. */
final class ModelServable extends EngineServable {
    private static final Logger LOG = LoggerFactory.getLogger(ModelServable.class);

    private final BackendModel model;
    private final BatchExecution execution;
    private final Scheduler scheduler;

    ModelServable(ServableId id, BackendModel model, DevicePool pool, int maxQueueSize, Clock clock) {
        super(id, model.config());
        this.model = model;
        this.execution = new BatchExecution(model, metadata(), statistics(), clock);
        SchedulerOptions options = new SchedulerOptions(
                maxQueueSize,
                model.traits().inline() ? SchedulerOptions.Inline.ALWAYS : SchedulerOptions.Inline.MEASURED);
        ModelConfig config = model.config();
        this.scheduler = config.batched() && config.batching() != null
                ? new DynamicBatcher(config, execution, pool, options)
                : new DirectScheduler(config, execution, pool, options);
    }

    @Override
    public long memoryBytes() {
        return model.memoryBytes();
    }

    @Override
    public void submit(InferenceJob job) {
        scheduler.submit(job);
    }

    @Override
    int queued() {
        return scheduler.queued();
    }

    /** Waits for what is queued, then frees the model. No handle is out any more, so nothing should be queued. */
    @Override
    void unload() {
        scheduler.close();
        try {
            scheduler.drained().toCompletableFuture().get(30, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (TimeoutException | java.util.concurrent.ExecutionException e) {
            LOG.error("{} still has work after 30 s; its memory stays in use", metadata().id(), e);
            return;
        }
        execution.close();
        model.close();
    }
}
