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
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.spi.management.LoadOptions;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelListChange;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.spi.management.ModelStatus;
import io.nereid.spi.management.VersionLabel;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.function.UnaryOperator;

/** The model of TensorFlow Serving's own tests, version 3, with signatures of each kind. Confined to one test. */
public final class HalfPlusTwo implements InferenceEngine, ModelControl {
    public final List<InferenceRequest> requests = new ArrayList<>();
    public final List<Runnable> held = new ArrayList<>();
    public List<ModelListEntry> configured = List.of();
    public List<ModelListChange> changes = List.of();
    public UnaryOperator<Tensor> answer = UnaryOperator.identity();
    public boolean holding;
    public int cancelled;

    static ModelMetadata model() {
        List<TensorSpec> x = List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1)));
        List<TensorSpec> y = List.of(new TensorSpec("y", DataType.FP32, Shape.of(-1)));
        Map<String, String> tensors = Map.of("x", "x:0", "y", "y:0");
        return new ModelMetadata(
                new ServableId("half", 3),
                "onnxruntime_onnx",
                x,
                y,
                0,
                Map.of(),
                Map.of(
                        "serving_default", new Signature(Signature.PREDICT, x, y, tensors),
                        "classify_x_to_y", new Signature(Signature.CLASSIFY, x, y, tensors),
                        "regress_x_to_y", new Signature(Signature.REGRESS, x, y, tensors)));
    }

    @Override
    public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        requests.add(request);
        Runnable run = () -> {
            Tensor x = request.inputs().get(0);
            Tensor y = Tensor.allocate("y", DataType.FP32, x.shape());
            for (int i = 0; i < x.byteLength(); i += 4) {
                y.buffer().putFloat(i, x.buffer().getFloat(i) / 2 + 2);
            }
            request.release();
            try {
                sink.next(new InferenceResponse(model().id(), "", List.of(answer.apply(y)), Map.of()), true);
            } catch (ServingException e) {
                y.close();
                sink.fail(e);
            }
        };
        if (holding) {
            held.add(run);
        } else {
            run.run();
        }
        return () -> cancelled++;
    }

    @Override
    public ModelMetadata metadata(ModelRef ref) {
        String label = ref.label();
        if (label != null && !label.equals("stable")) {
            throw ServingException.invalidArgument("Unrecognized servable version label: " + label);
        }
        if (!ref.model().equals("half") || ref.version() != ModelRef.ANY && ref.version() != 3) {
            throw ServingException.of(
                    ErrorCode.NOT_FOUND, "Request for unknown model: '" + ref.model() + "' is not found");
        }
        return model();
    }

    @Override
    public ModelConfig config(ModelRef ref) {
        return ModelConfig.unspecified(metadata(ref).id().model());
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
    public boolean ready(ModelRef ref) {
        return true;
    }

    private static ServableState state(long version, Phase phase, String reason) {
        return new ServableState(
                new ServableId("half", version), phase, reason.isEmpty() ? null : reason, "fake", 0, -1);
    }

    @Override
    public List<ModelStatus> index() {
        return List.of(
                new ModelStatus(
                        "half",
                        List.of(
                                state(3, Phase.AVAILABLE, ""),
                                state(1, Phase.FAILED, "no such file"),
                                state(5, Phase.WARMING, "")),
                        Map.of("stable", VersionLabel.of(3), "gone", VersionLabel.of(9))),
                new ModelStatus("never", List.of()));
    }

    @Override
    public CompletionStage<List<ModelListChange>> configure(List<ModelListEntry> models, boolean dryRun) {
        configured = models;
        return CompletableFuture.completedFuture(changes);
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
