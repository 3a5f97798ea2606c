// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.protocols.v2;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.spi.ServableState;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.spi.management.LoadOptions;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelStatus;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.Function;

/**
 * Models in memory: {@code identity} answers every input under its own name; others are put in by tests. Requests may
 * be held back and answered later. Confined to one thread.
 */
public final class FakeEngine implements InferenceEngine, ModelControl {
    /** A model that computes outputs from a request, which still owns its inputs. */
    public record Model(long version, Function<InferenceRequest, List<Tensor>> compute, ModelMetadata metadata) {}

    /** A request that is answered by the test. */
    public static final class Held implements InferenceCall {
        public final InferenceRequest request;
        public final ResponseSink sink;
        public boolean cancelled;

        Held(InferenceRequest request, ResponseSink sink) {
            this.request = request;
            this.sink = sink;
        }

        @Override
        public void cancel() {
            cancelled = true;
        }
    }

    public final Map<String, Model> models = new LinkedHashMap<>();
    public final List<Held> held = new ArrayList<>();
    public final List<String> loads = new ArrayList<>();
    public boolean holding;
    public boolean ready = true;
    public InferenceRequest last;
    public ServingException loadFailure;
    public LoadOptions lastLoad;
    public ModelConfig config;
    public Map<String, Object> responseParameters = Map.of();

    public FakeEngine() {
        models.put(
                "identity",
                new Model(
                        1,
                        FakeEngine::identity,
                        metadata("identity", 1, List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1, 4))))));
    }

    static ModelMetadata metadata(String name, long version, List<TensorSpec> inputs) {
        return new ModelMetadata(new ServableId(name, version), "java_builtin", inputs, inputs, 0, Map.of());
    }

    public static List<Tensor> identity(InferenceRequest request) {
        List<Tensor> outputs = new ArrayList<>();
        for (Tensor input : request.inputs()) {
            outputs.add(input.retain());
        }
        return outputs;
    }

    public void add(String name, long version, Function<InferenceRequest, List<Tensor>> compute, TensorSpec... inputs) {
        models.put(name, new Model(version, compute, metadata(name, version, List.of(inputs))));
    }

    @Override
    public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        last = request;
        Held call = new Held(request, sink);
        if (holding) {
            held.add(call);
        } else {
            answer(call);
        }
        return call;
    }

    /** Answers a held request. */
    public void answer(Held call) {
        InferenceRequest request = call.request;
        List<Tensor> outputs = new ArrayList<>();
        ServableId id;
        try {
            Model model = find(request.model());
            id = new ServableId(request.model().model(), model.version());
            outputs.addAll(model.compute().apply(request));
            select(request, outputs);
            if (outputs.isEmpty()) {
                // A response without outputs would mean that a decoupled model has ended.
                throw ServingException.invalidArgument("expected 1 inputs but got 0 inputs for model '"
                        + request.model().model() + "'");
            }
        } catch (ServingException e) {
            request.release();
            Tensor.closeAll(outputs);
            call.sink.fail(e);
            return;
        }
        request.release();
        call.sink.next(new InferenceResponse(id, request.id(), outputs, responseParameters), true);
    }

    private static void select(InferenceRequest request, List<Tensor> outputs) {
        if (request.outputs().isEmpty()) {
            return;
        }
        List<Tensor> chosen = new ArrayList<>();
        for (RequestedOutput wanted : request.outputs()) {
            Tensor found = outputs.stream()
                    .filter(t -> t.name().equals(wanted.name()))
                    .findFirst()
                    .orElseThrow(() -> ServingException.invalidArgument("unexpected inference output '" + wanted.name()
                            + "' for model '" + request.model().model() + "'"));
            chosen.add(found);
        }
        for (Tensor t : outputs) {
            if (!chosen.contains(t)) {
                t.close();
            }
        }
        outputs.clear();
        outputs.addAll(chosen);
    }

    private Model find(ModelRef ref) {
        Model model = models.get(ref.model());
        if (model == null) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND, "Request for unknown model: '" + ref.model() + "' is not found");
        }
        if (ref.version() != ModelRef.ANY && ref.version() != model.version()) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND,
                    "Request for unknown model: '" + ref.model() + "' version " + ref.version() + " is not found");
        }
        return model;
    }

    @Override
    public ModelMetadata metadata(ModelRef model) {
        return find(model).metadata();
    }

    @Override
    public ModelConfig config(ModelRef model) {
        Model found = find(model);
        if (config != null) {
            return config;
        }
        return ModelConfig.unspecified(model.model())
                .completed(
                        "onnxruntime_onnx",
                        "onnxruntime",
                        8,
                        found.metadata().inputs(),
                        found.metadata().outputs(),
                        DynamicBatching.EAGER,
                        2);
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
        find(model);
        return ready;
    }

    @Override
    public List<ModelStatus> index() {
        List<ModelStatus> index = new ArrayList<>();
        models.forEach((name, model) -> index.add(new ModelStatus(
                name,
                List.of(new ServableState(
                        new ServableId(name, model.version()), Phase.AVAILABLE, null, "java", 1, 0)))));
        index.add(new ModelStatus(
                "broken",
                List.of(new ServableState(new ServableId("broken", 3), Phase.FAILED, "no such file", "", 0, -1))));
        index.add(new ModelStatus("never", List.of()));
        return index;
    }

    @Override
    public CompletionStage<Void> load(String model, LoadOptions options) {
        loads.add("load " + model);
        lastLoad = options;
        return loadFailure == null
                ? CompletableFuture.completedFuture(null)
                : CompletableFuture.failedFuture(loadFailure);
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        loads.add("unload " + model + (dependents ? " and dependents" : ""));
        return CompletableFuture.completedFuture(null);
    }
}
