// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v1;

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
import io.nereid.spi.management.VersionLabel;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;

/** Models that return their inputs under the names of the outputs. Confined to a test. */
public final class FakeEngine implements InferenceEngine, ModelControl {
    private final Map<String, ModelMetadata> models = new TreeMap<>();
    private final Map<String, ServableState> states = new TreeMap<>();
    private final Map<String, Function<InferenceRequest, List<Tensor>>> answers = new TreeMap<>();
    private final Map<String, Map<String, VersionLabel>> labels = new TreeMap<>();
    final List<Shape> shapes = new ArrayList<>();
    final List<InferenceRequest> requests = new ArrayList<>();
    /** The parameters of every response. */
    Map<String, Object> parameters = Map.of();

    public void add(String name, List<TensorSpec> inputs, List<TensorSpec> outputs) {
        ServableId id = new ServableId(name, 3);
        models.put(name, new ModelMetadata(id, "fake", inputs, outputs, 0, Map.of()));
        states.put(name, new ServableState(id, ServableState.Phase.AVAILABLE, null, "fake", 1, 1));
    }

    /** A model of any metadata that responds with the result of {@code answer}, which need not close the inputs. */
    void add(ModelMetadata metadata, Function<InferenceRequest, List<Tensor>> answer) {
        String name = metadata.id().model();
        models.put(name, metadata);
        answers.put(name, answer);
        states.put(name, new ServableState(metadata.id(), ServableState.Phase.AVAILABLE, null, "fake", 1, 1));
    }

    /** Lets a label of a model stand for a version. */
    void label(String model, String label, long version) {
        labels.computeIfAbsent(model, m -> new TreeMap<>()).put(label, VersionLabel.of(version));
    }

    void addFailed(String name, String reason) {
        states.put(name, new ServableState(new ServableId(name, 1), ServableState.Phase.FAILED, reason, "fake", 0, -1));
    }

    @Override
    public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        ModelMetadata metadata = metadata(request.model());
        requests.add(request);
        Function<InferenceRequest, List<Tensor>> answer =
                answers.get(request.model().model());
        if (answer != null) {
            List<Tensor> made;
            try {
                made = answer.apply(request);
            } catch (ServingException e) {
                request.release();
                sink.fail(e);
                return () -> {};
            }
            request.release();
            sink.next(new InferenceResponse(metadata.id(), request.id(), made, parameters), true);
            return () -> {};
        }
        List<Tensor> outputs = new ArrayList<>();
        for (int i = 0; i < request.inputs().size(); i++) {
            Tensor in = request.inputs().get(i);
            shapes.add(in.shape());
            outputs.add(in.retainAs(metadata.outputs().get(i).name(), in.shape()));
        }
        request.release();
        sink.next(new InferenceResponse(metadata.id(), request.id(), outputs, parameters), true);
        return () -> {};
    }

    @Override
    public ModelMetadata metadata(ModelRef model) {
        ModelMetadata found = models.get(model.model());
        String label = model.label();
        if (found != null
                && label != null
                && !labels.getOrDefault(model.model(), Map.of()).containsKey(label)) {
            throw ServingException.invalidArgument("Unrecognized servable version label: " + label);
        }
        if (found == null || (model.version() != ModelRef.ANY && model.version() != 3)) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND, "Request for unknown model: '" + model.model() + "' is not found");
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
        return true;
    }

    @Override
    public boolean ready(ModelRef model) {
        return models.containsKey(model.model());
    }

    @Override
    public List<ModelStatus> index() {
        return states.entrySet().stream()
                .map(e -> new ModelStatus(e.getKey(), List.of(e.getValue()), labels.getOrDefault(e.getKey(), Map.of())))
                .toList();
    }

    @Override
    public CompletionStage<Void> load(String model, LoadOptions options) {
        return new CompletableFuture<>();
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return new CompletableFuture<>();
    }
}
