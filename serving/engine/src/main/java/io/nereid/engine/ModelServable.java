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
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.ModelConfig;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.Servable;
import io.nereid.spi.ServableId;
import io.nereid.spi.TensorSpec;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A loaded version on a backend: its metadata, its queue and its instances. Thread-safe. */
final class ModelServable implements Servable {
    private static final Logger LOG = LoggerFactory.getLogger(ModelServable.class);

    private final BackendModel model;
    private final ModelConfig config;
    private final ModelMetadata metadata;
    private final RequestChecks checks;
    private final ModelStatistics statistics;
    private final BatchExecution execution;
    private final Scheduler scheduler;
    private final boolean labelled;

    ModelServable(ServableId id, BackendModel model, DevicePool pool, int maxQueueSize, Clock clock) {
        this.model = model;
        this.config = model.config();
        this.metadata = describe(id, config);
        this.checks = new RequestChecks(metadata);
        this.statistics = new ModelStatistics(id);
        this.execution = new BatchExecution(model, metadata, statistics, clock);
        this.labelled = !config.labels().isEmpty();
        SchedulerOptions options = new SchedulerOptions(
                maxQueueSize,
                model.traits().inline() ? SchedulerOptions.Inline.ALWAYS : SchedulerOptions.Inline.MEASURED);
        this.scheduler = config.batched() && config.batching() != null
                ? new DynamicBatcher(config, execution, pool, options)
                : new DirectScheduler(config, execution, pool, options);
    }

    private static ModelMetadata describe(ServableId id, ModelConfig config) {
        return new ModelMetadata(
                id,
                config.platform().isEmpty() ? config.backend() : config.platform(),
                onWire(config.inputs(), config.batched()),
                onWire(config.outputs(), config.batched()),
                config.maxBatchSize(),
                Map.of());
    }

    private static List<TensorSpec> onWire(List<TensorSpec> specs, boolean batched) {
        return batched
                ? specs.stream()
                        .map(s ->
                                new TensorSpec(s.name(), s.dataType(), s.shape().prepend(-1), s.optional()))
                        .toList()
                : specs;
    }

    @Override
    public ModelMetadata metadata() {
        return metadata;
    }

    @Override
    public ModelConfig config() {
        return config;
    }

    @Override
    public long memoryBytes() {
        return model.memoryBytes();
    }

    @Override
    public void submit(InferenceJob job) {
        scheduler.submit(job);
    }

    RequestChecks checks() {
        return checks;
    }

    ModelStatistics statistics() {
        return statistics;
    }

    int queued() {
        return scheduler.queued();
    }

    /** Replaces the outputs of which classes were asked for; others stay. On an exception the outputs stay with the caller. */
    List<Tensor> classify(List<RequestedOutput> wanted, List<Tensor> outputs) {
        boolean any = false;
        for (int i = 0; i < wanted.size(); i++) {
            any |= wanted.get(i).classes() > 0;
        }
        if (!any) {
            return outputs;
        }
        List<Tensor> answer = new ArrayList<>(outputs);
        List<Tensor> replaced = new ArrayList<>();
        List<Tensor> made = new ArrayList<>();
        try {
            for (RequestedOutput w : wanted) {
                for (int i = 0; w.classes() > 0 && i < answer.size(); i++) {
                    Tensor scores = answer.get(i);
                    if (scores.name().equals(w.name())) {
                        List<String> labels = labelled ? config.labels().getOrDefault(w.name(), List.of()) : List.of();
                        Tensor top = Classification.top(scores, w.classes(), config.batched(), labels);
                        made.add(top);
                        replaced.add(scores);
                        answer.set(i, top);
                    }
                }
            }
        } catch (RuntimeException e) {
            Tensor.closeAll(made);
            throw e;
        }
        Tensor.closeAll(replaced);
        return answer;
    }

    /** Waits for what is queued, then frees the model. No handle is out any more, so nothing should be queued. */
    void unload() {
        scheduler.close();
        try {
            scheduler.drained().toCompletableFuture().get(30, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (TimeoutException | java.util.concurrent.ExecutionException e) {
            LOG.error("{} still has work after 30 s; its memory stays in use", metadata.id(), e);
            return;
        }
        execution.close();
        model.close();
    }
}
