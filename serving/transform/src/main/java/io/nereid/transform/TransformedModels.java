// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.management.LoadOptions;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelListChange;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.spi.management.ModelStatus;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Executor;

/** The predictor's models with the transformer's steps around them, under the same names. Thread-safe: immutable. */
final class TransformedModels implements InferenceEngine, ModelControl {
    private final TransformerSteps steps;
    private final Executor executor;
    private final InferenceEngine engine;
    private final ModelControl control;
    private final long timeoutNanos;

    /** @param timeoutNanos the longest time from a request's arrival; 0 for no limit */
    TransformedModels(
            TransformerSteps steps,
            Executor executor,
            InferenceEngine engine,
            ModelControl control,
            long timeoutNanos) {
        this.steps = steps;
        this.executor = executor;
        this.engine = engine;
        this.control = control;
        this.timeoutNanos = timeoutNanos;
    }

    @Override
    public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        TransformedCall call = new TransformedCall(steps, engine, executor, request, sink, deadline(request));
        call.start();
        return call;
    }

    /** The earlier of the client's deadline and the service's timeout. */
    private long deadline(InferenceRequest request) {
        long own = request.arrivedNanos() + timeoutNanos;
        boolean earlier = request.deadlineNanos() == Long.MAX_VALUE || own - request.deadlineNanos() < 0;
        return timeoutNanos > 0 && earlier ? own : request.deadlineNanos();
    }

    @Override
    public ModelMetadata metadata(ModelRef model) {
        return steps.metadata(engine.metadata(model));
    }

    @Override
    public ModelConfig config(ModelRef model) {
        ModelConfig config = engine.config(model);
        if (!steps.ownSpecs()) {
            return config;
        }
        ModelMetadata metadata = metadata(model);
        return config.toBuilder()
                .maxBatchSize(0)
                .inputs(metadata.inputs())
                .outputs(metadata.outputs())
                .document(Map.of())
                .build();
    }

    @Override
    public boolean live() {
        return control.live();
    }

    @Override
    public boolean ready() {
        return control.ready();
    }

    @Override
    public boolean ready(ModelRef model) {
        return control.ready(model);
    }

    @Override
    public List<ModelStatus> index() {
        return control.index();
    }

    @Override
    public CompletionStage<Void> load(String model, LoadOptions options) {
        return control.load(model, options);
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return control.unload(model, dependents);
    }

    @Override
    public CompletionStage<List<ModelListChange>> configure(List<ModelListEntry> models, boolean dryRun) {
        return control.configure(models, dryRun);
    }
}
