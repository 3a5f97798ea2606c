// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.servable;

import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelMetric;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.engine.execution.BatchExecution;
import io.nereid.engine.execution.InstancePlacements;
import io.nereid.engine.request.TabularInputs;
import io.nereid.engine.statistics.ModelStatistics;
import io.nereid.scheduling.BatchStrategy;
import io.nereid.scheduling.InitialStateFiles;
import io.nereid.scheduling.Scheduler;
import io.nereid.scheduling.SchedulerOptions;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.scheduling.factory.SchedulerFactory;
import io.nereid.scheduling.objective.ObjectiveStatus;
import io.nereid.spi.InferenceJob;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ServableId;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.parameters.LatencyObjective;
import io.nereid.spi.config.parameters.PaddingPolicy;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** A loaded version on a backend: its metadata, its scheduler and its instances. Thread-safe. */
public final class ModelServable extends EngineServable {
    private static final Logger LOG = LoggerFactory.getLogger(ModelServable.class);

    private final BackendModel model;
    private final BatchExecution execution;
    private final Scheduler scheduler;
    private final InstancePlacements placements;
    /** The servables of the other signatures; they share the model. */
    private final Map<String, ModelServable> signatures;

    private final @Nullable TabularInputs tabularInputs;
    /** Whether the scheduler lets code of the model read the inputs. */
    private final boolean readsInputs;

    private ModelServable(
            ServableId id,
            BackendModel model,
            ModelConfig config,
            ModelStatistics statistics,
            DeviceExecutor pool,
            SchedulerOptions options,
            InitialStateFiles states,
            InstancePlacements placements,
            Clock clock) {
        super(id, config, statistics, own(model));
        this.model = model;
        this.placements = placements;
        this.execution =
                new BatchExecution(model, "", model.config(), id, statistics, clock, pool::idleThreads, placements);
        if (placements.onGpu()) {
            execution.open();
        }
        this.scheduler = scheduler(execution, states, model, pool, options);
        Map<String, ModelServable> others = new HashMap<>();
        own(model).forEach((name, s) -> {
            if (!name.equals(ModelMetadata.DEFAULT_SIGNATURE)) {
                others.put(name, new ModelServable(this, name, withSignature(config, s), pool, options, clock));
            }
        });
        this.signatures = Map.copyOf(others);
        this.tabularInputs =
                model.traits().takesTables() ? new TabularInputs(metadata().inputs(), config) : null;
        this.readsInputs = options.strategy() != null;
    }

    private static Scheduler scheduler(
            BatchExecution execution,
            InitialStateFiles states,
            BackendModel model,
            DeviceExecutor pool,
            SchedulerOptions options) {
        try {
            return SchedulerFactory.create(model.config(), execution, pool, options, states);
        } catch (RuntimeException e) {
            execution.close();
            throw e;
        }
    }

    /** Another signature of a version, with its own inputs, outputs and queue. */
    private ModelServable(
            ModelServable version,
            String signature,
            ModelConfig config,
            DeviceExecutor pool,
            SchedulerOptions options,
            Clock clock) {
        super(version.metadata().id(), config, version.statistics());
        this.model = version.model;
        this.placements = version.placements;
        this.execution = new BatchExecution(
                model,
                signature,
                config,
                version.metadata().id(),
                version.statistics(),
                clock,
                pool::idleThreads,
                placements);
        this.scheduler = SchedulerFactory.create(config, execution, pool, options.withStrategy(null));
        this.signatures = Map.of();
        this.tabularInputs =
                model.traits().takesTables() ? new TabularInputs(metadata().inputs(), config) : null;
        this.readsInputs = false;
    }

    /** The signatures of the model. A sequence has only the default signature. */
    private static Map<String, Signature> own(BackendModel model) {
        return model.config().sequence() == null ? model.signatures() : Map.of();
    }

    /** The configuration with the inputs and outputs of one signature. Padding names tensors of the default one. */
    private static ModelConfig withSignature(ModelConfig config, Signature signature) {
        Map<String, String> parameters = new HashMap<>(config.parameters());
        parameters.keySet().removeAll(PaddingPolicy.PARAMETERS);
        return config.toBuilder()
                .parameters(Map.copyOf(parameters))
                .inputs(signature.inputs())
                .outputs(signature.outputs())
                .batchInputs(List.of())
                .batchOutputs(List.of())
                .build();
    }

    /** As below, of a model that runs on processors. */
    public static ModelServable of(
            ServableId id,
            BackendModel model,
            ModelConfig config,
            ModelStatistics statistics,
            DeviceExecutor pool,
            SchedulerOptions options,
            InitialStateFiles states,
            Clock clock) {
        return of(
                id,
                model,
                config,
                statistics,
                pool,
                options,
                states,
                new InstancePlacements(model.config(), null),
                clock);
    }

    /**
     * Creates the servable of a loaded model, with its scheduler. It owns the model and the strategy of the options.
     * When this method throws, the caller keeps the model, and the strategy is closed.
     *
     * @param config the model's configuration, as clients get it
     * @param states the files with the initial states of its sequences
     * @param placements where its instances run; those on GPUs are created at once
     */
    public static ModelServable of(
            ServableId id,
            BackendModel model,
            ModelConfig config,
            ModelStatistics statistics,
            DeviceExecutor pool,
            SchedulerOptions options,
            InitialStateFiles states,
            InstancePlacements placements,
            Clock clock) {
        try {
            return new ModelServable(id, model, config, statistics, pool, options, states, placements, clock);
        } catch (RuntimeException e) {
            BatchStrategy strategy = options.strategy();
            if (strategy != null) {
                strategy.close();
            }
            throw e;
        }
    }

    @Override
    public long memoryBytes() {
        return model.memoryBytes();
    }

    @Override
    public boolean ready() {
        return model.ready() && placements.refusal() == null;
    }

    @Override
    public boolean takesDeviceTensors(int device) {
        // Sequences add states and controls to the inputs; tables are converted; a strategy of the model's own reads
        // them.
        return execution.takesDeviceTensors()
                && placements.runsOn(device)
                && !readsInputs
                && !cached()
                && config().sequence() == null
                && scalarShapes() == null
                && tabularInputs == null;
    }

    @Override
    public List<ModelMetric> metrics() {
        return model.metrics();
    }

    @Override
    public void submit(InferenceJob job) {
        ServingException refusal = placements.refusal();
        if (refusal != null) {
            job.fail(refusal);
            return;
        }
        scheduler.submit(job);
    }

    @Override
    public @Nullable ServingException refusal(InferenceJob job) {
        return scheduler.refusal(job);
    }

    @Override
    public @Nullable ObjectiveStatus objective() {
        return scheduler.objective();
    }

    @Override
    public @Nullable TabularInputs tabularInputs() {
        return tabularInputs;
    }

    @Override
    public String signatureFor(Map<String, Object> parameters) {
        return model.signature(parameters);
    }

    @Override
    public String signatureWith(List<RequestedOutput> outputs) {
        if (signatures.isEmpty() || validator().has(outputs)) {
            return "";
        }
        return model.signatureWith(outputs.stream().map(RequestedOutput::name).toList());
    }

    @Override
    Map<String, ModelServable> signatures() {
        return signatures;
    }

    @Override
    public int queued() {
        int queued = scheduler.queued();
        for (ModelServable other : signatures.values()) {
            queued += other.queued();
        }
        return queued;
    }

    /**
     * Applies the instances, maximum batch size, batching and queue settings and the latency objective of another configuration, and
     * shows that configuration.
     *
     * @return false, without any change, when the scheduler or the model cannot apply them while it is in use
     */
    public boolean configure(ModelConfig next) {
        ModelConfig now = config();
        boolean sized = now.maxBatchSize() != next.maxBatchSize();
        if (sized && !model.acceptsMaxBatchSize(next.maxBatchSize())) {
            return false;
        }
        boolean same = !sized
                && Objects.equals(now.batching(), next.batching())
                && now.queue().equals(next.queue())
                && Objects.equals(
                        now.parameters().get(LatencyObjective.PARAMETER),
                        next.parameters().get(LatencyObjective.PARAMETER));
        if (!same && !scheduler.configure(next)) {
            return false;
        }
        placements.configure(next);
        scheduler.instances(Math.max(1, next.instances()));
        config(next);
        signatures.forEach((name, other) -> {
            // The same settings, for a scheduler that was made from the same configuration.
            var unused = other.configure(next.toBuilder()
                    .inputs(other.config().inputs())
                    .outputs(other.config().outputs())
                    .batchInputs(List.of())
                    .batchOutputs(List.of())
                    .build());
        });
        return true;
    }

    /** Runs jobs on one instance without the queue and without statistics; only before the first request. */
    public void warm(int instance, List<InferenceJob> jobs) {
        execution.run(instance, jobs, new ModelStatistics(metadata().id()));
    }

    /** Waits for queued requests, then frees the model. All handles have been closed, so the queue should be empty. */
    @Override
    public void unload() {
        List<CompletableFuture<Void>> drained = new ArrayList<>();
        drained.add(ended());
        signatures.values().forEach(other -> drained.add(other.ended()));
        try {
            CompletableFuture.allOf(drained.toArray(new CompletableFuture<?>[0]))
                    .get(30, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        } catch (TimeoutException | ExecutionException e) {
            LOG.error(
                    "{} still has queued or running requests after 30 s; its memory is not freed",
                    metadata().id(),
                    e);
            return;
        }
        signatures.values().forEach(other -> other.execution.close());
        execution.close();
        model.close();
    }

    /** Rejects new requests; completes when the queued ones have been answered. */
    private CompletableFuture<Void> ended() {
        scheduler.close();
        return scheduler.drained().toCompletableFuture();
    }
}
