// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.transform;

import io.nereid.base.ServingException;
import io.nereid.spi.InferenceCall;
import io.nereid.spi.InferenceEngine;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelMetadata;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.spi.management.LoadOptions;
import io.nereid.spi.management.ModelControl;
import io.nereid.spi.management.ModelStatus;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;

/** A predictor that keeps requests until the test answers them. Thread-safe as far as tests need. */
final class FakePredictor implements InferenceEngine, ModelControl {
    record Asked(InferenceRequest request, ResponseSink sink) {
        /** Responds with these values as {@code y}. */
        void answer(boolean last, float... values) {
            List<Tensor> outputs = new ArrayList<>(TensorMap.of("y", values).tensors());
            sink.next(
                    new InferenceResponse(new ServableId("m", 3), request.id(), outputs, Map.of("of", "predictor")),
                    last);
        }

        /** The values of the input {@code x}, which is released. */
        float[] x() {
            try {
                return TensorMap.of(request.inputs(), Map.of(), new TensorValues.Scope())
                        .floats("x");
            } finally {
                request.release();
            }
        }
    }

    /** The responses that a client receives. Thread-safe. */
    static final class Client implements ResponseSink {
        final List<String> received = new ArrayList<>();
        final CompletableFuture<Void> ended = new CompletableFuture<>();

        @Nullable ServingException failure;

        @Override
        public synchronized void next(InferenceResponse response, boolean last) {
            StringBuilder text = new StringBuilder(response.servable() + "#" + response.id());
            TensorMap read = TensorMap.of(response.outputs(), response.parameters(), new TensorValues.Scope());
            for (String name : read.names()) {
                text.append(' ').append(name).append('=');
                text.append(
                        read.type(name) == DataType.BYTES
                                ? List.of(read.texts(name)).toString()
                                : java.util.Arrays.toString(read.floats(name)));
            }
            response.close();
            received.add(text.toString());
            if (last) {
                ended.complete(null);
            }
        }

        @Override
        public synchronized void fail(ServingException e) {
            if (failure != null || ended.isDone()) {
                throw new IllegalStateException("ended twice", e);
            }
            failure = e;
            ended.complete(null);
        }
    }

    final List<Asked> asked = new ArrayList<>();
    final AtomicInteger cancelled = new AtomicInteger();

    @Override
    public synchronized InferenceCall infer(InferenceRequest request, ResponseSink sink) {
        asked.add(new Asked(request, sink));
        return cancelled::incrementAndGet;
    }

    synchronized Asked asked(int i) {
        return asked.get(i);
    }

    @Override
    public ModelMetadata metadata(ModelRef model) {
        return new ModelMetadata(
                new ServableId("m", 3),
                "p",
                List.of(new TensorSpec("x", DataType.FP32, Shape.of(-1, 2))),
                List.of(new TensorSpec("y", DataType.FP32, Shape.of(-1))),
                8,
                Map.of());
    }

    @Override
    public ModelConfig config(ModelRef model) {
        return ModelConfig.builder("m").backend("b").maxBatchSize(8).build();
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
        return true;
    }

    @Override
    public List<ModelStatus> index() {
        return List.of(new ModelStatus("m", List.of()));
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
