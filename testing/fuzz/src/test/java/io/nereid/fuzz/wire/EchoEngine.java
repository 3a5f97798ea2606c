// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.fuzz.wire;

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
import io.nereid.spi.Signature;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.spi.management.LoadOptions;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelListChange;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.spi.management.ModelStatus;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/**
 * An engine that answers every request with its inputs, after a check of what codecs promise: a tensor has as many bytes as its shape
 * says. Model {@code m} has one input of each of several types; {@code half} has a vector of floats, and signatures of all kinds.
 * Confined to one thread.
 */
final class EchoEngine implements InferenceEngine, ModelControl {
    private final ModelMetadata many;
    private final ModelMetadata half;

    EchoEngine() {
        List<TensorSpec> inputs = List.of(
                new TensorSpec("f", DataType.FP32, Shape.of(-1, -1)),
                new TensorSpec("i", DataType.INT64, Shape.of(-1)),
                new TensorSpec("t", DataType.BYTES, Shape.of(-1)),
                new TensorSpec("b", DataType.BOOL, Shape.of(-1)));
        many = new ModelMetadata(new ServableId("m", 1), "java", inputs, inputs, 0, Map.of());
        List<TensorSpec> x = List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1)));
        Map<String, String> tensors = Map.of("x", "x:0");
        half = new ModelMetadata(
                new ServableId("half", 3),
                "tensorflow_savedmodel",
                x,
                x,
                0,
                Map.of(),
                Map.of(
                        ModelMetadata.DEFAULT_SIGNATURE,
                        new Signature(Signature.PREDICT, x, x, tensors),
                        "classify",
                        new Signature(Signature.CLASSIFY, x, x, tensors),
                        "regress",
                        new Signature(Signature.REGRESS, x, x, tensors)));
    }

    @Override
    public InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        List<Tensor> outputs = new ArrayList<>();
        ModelMetadata model;
        try {
            model = metadata(request.model());
            for (Tensor input : request.inputs()) {
                check(input);
                outputs.add(input.retain());
            }
            if (outputs.isEmpty()) {
                throw ServingException.invalidArgument("a request without inputs");
            }
        } catch (ServingException e) {
            request.release();
            Tensor.closeAll(outputs);
            sink.fail(e);
            return () -> {};
        }
        request.release();
        sink.next(new InferenceResponse(model.id(), request.id(), outputs, Map.of()), true);
        return () -> {};
    }

    private static void check(Tensor input) {
        long elements = input.shape().elementCount();
        if (input.shape().isDynamic() || elements < 0) {
            RequestChecks.violated("tensor '" + input.name() + "' of shape " + input.shape());
        } else if (input.dataType().isFixedSize()) {
            if (input.byteLength() != input.shape().byteSize(input.dataType())) {
                RequestChecks.violated("tensor '" + input.name() + "' of " + input.dataType() + " and shape "
                        + input.shape() + " has " + input.byteLength() + " bytes");
            }
        } else if (input.byteLength() < 4 * elements) {
            RequestChecks.violated("tensor '" + input.name() + "' of shape " + input.shape() + " has "
                    + input.byteLength() + " bytes");
        }
        // Reads every byte, so that a tensor beyond its memory is noticed.
        java.nio.ByteBuffer bytes = input.buffer();
        for (int i = 0; i < input.byteLength(); i++) {
            bytes.get(i);
        }
    }

    @Override
    public ModelMetadata metadata(ModelRef model) {
        ModelMetadata found = switch (model.model()) {
            case "m" -> many;
            case "half" -> half;
            default -> null;
        };
        if (found == null
                || model.version() != ModelRef.ANY
                        && model.version() != found.id().version()) {
            throw ServingException.of(ErrorCode.NOT_FOUND, "model '" + model.model() + "' is not found");
        }
        return found;
    }

    @Override
    public ModelConfig config(ModelRef model) {
        ModelMetadata found = metadata(model);
        return ModelConfig.builder(found.id().model())
                .inputs(found.inputs())
                .outputs(found.outputs())
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
        metadata(model);
        return true;
    }

    @Override
    public List<ModelStatus> index() {
        return List.of(new ModelStatus(
                "half",
                List.of(new ServableState(
                        new ServableId("half", 3), ServableState.Phase.AVAILABLE, null, "java", 1, 0))));
    }

    @Override
    public CompletionStage<Void> load(String model, LoadOptions options) {
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return CompletableFuture.completedFuture(null);
    }

    @Override
    public CompletionStage<List<ModelListChange>> configure(List<ModelListEntry> models, boolean dryRun) {
        return CompletableFuture.completedFuture(List.of());
    }
}
