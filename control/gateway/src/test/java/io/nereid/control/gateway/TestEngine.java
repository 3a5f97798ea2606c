// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.gateway;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.management.LoadOptions;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelStatus;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** An engine that queues requests until the test responds to them. */
public final class TestEngine implements InferenceEngine, ModelControl {
    public record PendingRequest(InferenceRequest request, ResponseSink sink) {}

    public final Set<String> models = new LinkedHashSet<>();
    public final List<PendingRequest> requests = new ArrayList<>();
    int cancelled;

    private void check(ModelRef ref) {
        if (!models.contains(ref.model())) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "Request for unknown model: '" + ref.model() + "'",
                    "is '" + ref.model() + "' right?");
        }
    }

    @Override
    public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        requests.add(new PendingRequest(request, sink));
        return () -> cancelled++;
    }

    @Override
    public ModelMetadata metadata(ModelRef model) {
        check(model);
        return new ModelMetadata(new ServableId(model.model(), 3), "p", List.of(), List.of(), 0, Map.of());
    }

    @Override
    public ModelConfig config(ModelRef model) {
        check(model);
        return ModelConfig.builder(model.model())
                .backend("onnxruntime")
                .document(Map.of("name", model.model(), "backend", "onnxruntime"))
                .build();
    }

    @Override
    public boolean live() {
        return true;
    }

    @Override
    public boolean ready() {
        return true;
    }

    @Override
    public boolean ready(ModelRef model) {
        check(model);
        return true;
    }

    @Override
    public List<ModelStatus> index() {
        return models.stream()
                .map(m -> new ModelStatus(
                        m,
                        List.of(new ServableState(
                                new ServableId(m, 3),
                                ServableState.Phase.AVAILABLE,
                                "model " + m + " is fine",
                                "onnxruntime",
                                0,
                                -1))))
                .toList();
    }

    @Override
    public CompletionStage<Void> load(String model, LoadOptions options) {
        return CompletableFuture.completedStage(null);
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return CompletableFuture.completedStage(null);
    }
}
