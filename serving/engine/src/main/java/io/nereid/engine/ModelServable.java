// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.backend.BackendModel;
import io.nereid.base.Clock;
import io.nereid.scheduling.BatchStrategy;
import io.nereid.scheduling.DevicePool;
import io.nereid.scheduling.InitialStates;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ServableId;
import java.util.List;
import java.util.concurrent.ExecutionException;
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

    private ModelServable(
            ServableId id,
            BackendModel model,
            ModelConfig config,
            ModelStatistics statistics,
            DevicePool pool,
            SchedulerOptions options,
            InitialStates states,
            Clock clock) {
        super(id, config, statistics);
        this.model = model;
        this.execution = new BatchExecution(model, id, statistics, clock);
        this.scheduler = Scheduler.of(model.config(), execution, pool, options, states);
    }

    /**
     * Puts a loaded model behind its queue; it owns the model and the options' strategy from here on. On an exception the
     * model stays with the caller and the strategy is closed.
     *
     * @param config that of the model, as clients get it
     * @param states files that the states of its sequences begin with
     */
    static ModelServable of(
            ServableId id,
            BackendModel model,
            ModelConfig config,
            ModelStatistics statistics,
            DevicePool pool,
            SchedulerOptions options,
            InitialStates states,
            Clock clock) {
        try {
            return new ModelServable(id, model, config, statistics, pool, options, states, clock);
        } catch (RuntimeException e) {
            BatchStrategy strategy = options.strategy();
            if (strategy != null) {
                strategy.close();
            }
            throw e;
        }
    }

    /** Options with another answer to whether runs may happen on the submitting thread. */
    static SchedulerOptions inline(SchedulerOptions o, SchedulerOptions.Inline inline) {
        return new SchedulerOptions(
                o.maxQueueSize(), inline, o.strategy(), o.limiter(), o.delayScheduler(), o.backlogDelayScheduler());
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

    /** The number of instances that another configuration says, and that configuration. */
    void resize(ModelConfig next) {
        scheduler.instances(Math.max(1, next.instances()));
        config(next);
    }

    /** Runs jobs on one instance past the queue, uncounted; only before the first request. */
    void warm(int instance, List<InferenceJob> jobs) {
        execution.run(instance, jobs, new ModelStatistics(metadata().id()));
    }

    /** Waits for what is queued, then frees the model. No handle is out any more, so nothing should be queued. */
    @Override
    void unload() {
        scheduler.close();
        try {
            scheduler.drained().toCompletableFuture().get(30, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (TimeoutException | ExecutionException e) {
            LOG.error(
                    "{} still has work after 30 s; its memory stays in use",
                    metadata().id(),
                    e);
            return;
        }
        execution.close();
        model.close();
    }
}
