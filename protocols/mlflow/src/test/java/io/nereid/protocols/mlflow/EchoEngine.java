// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.mlflow;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.spi.management.LoadOptions;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelStatus;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** Models that return their inputs under the inputs' names. Confined to a test. */
final class EchoEngine implements InferenceEngine, ModelControl {
    private final Map<String, ModelMetadata> models = new TreeMap<>();
    final List<ModelRef> asked = new ArrayList<>();
    boolean ready = true;

    EchoEngine with(String name, String features, TensorSpec... inputs) {
        Map<String, String> properties = features.isEmpty() ? Map.of() : Map.of("feature_names", features);
        models.put(
                name,
                new ModelMetadata(new ServableId(name, 1), "echo", List.of(inputs), List.of(inputs), 0, properties));
        return this;
    }

    @Override
    public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        asked.add(request.model());
        ModelMetadata metadata = metadata(request.model());
        List<Tensor> outputs = new ArrayList<>();
        request.inputs().forEach(t -> outputs.add(t.retain()));
        request.release();
        sink.next(new InferenceResponse(metadata.id(), request.id(), outputs, Map.of()), true);
        return () -> {};
    }

    @Override
    public ModelMetadata metadata(ModelRef model) {
        ModelMetadata found = models.get(model.model());
        if (found == null) {
            throw ServingException.of(ErrorCode.NOT_FOUND, "there is no model '" + model.model() + "'");
        }
        return found;
    }

    @Override
    public ModelConfig config(ModelRef model) {
        return ModelConfig.unspecified(model.model());
    }

    @Override
    public boolean live() {
        return true;
    }

    @Override
    public boolean ready() {
        return ready;
    }

    @Override
    public boolean ready(ModelRef model) {
        return ready;
    }

    @Override
    public List<ModelStatus> index() {
        List<ModelStatus> all = new ArrayList<>(List.of(new ModelStatus("never-loaded", List.of())));
        models.forEach((name, m) -> all.add(new ModelStatus(
                name, List.of(new ServableState(m.id(), ServableState.Phase.AVAILABLE, null, "echo", 1, 1)))));
        return all;
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
