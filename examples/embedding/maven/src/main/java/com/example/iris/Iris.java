// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package com.example.iris;

import io.nereid.backend.Backend;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.engine.Engine;
import io.nereid.engine.options.EngineOptions;
import io.nereid.repository.RepositorySource;
import io.nereid.repository.RepositorySource.Mode;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.ServiceLoader;
import java.util.concurrent.CompletableFuture;

/** The model that says which of three irises a flower is, in this process. Thread-safe. */
public final class Iris implements AutoCloseable {
    private static final List<String> NAMES = List.of("setosa", "versicolor", "virginica");

    private final Engine engine;

    private Iris(Engine engine) {
        this.engine = engine;
    }

    /**
     * Loads the model, and waits until it is available or has failed.
     *
     * @param models the folder of the models, one of which is {@code iris}; the others are not loaded
     */
    public static Iris load(Path models) {
        // Every backend whose module is among the dependencies.
        List<Backend> backends = ServiceLoader.load(Backend.class).stream()
                .map(ServiceLoader.Provider::get)
                .toList();
        RepositorySource.Options irisAlone =
                RepositorySource.Options.DEFAULT.withMode(Mode.EXPLICIT).withStartModels(List.of("iris"));
        EngineOptions options =
                EngineOptions.builder(List.of(models)).repository(irisAlone).build();
        Engine engine = new Engine(options, backends, Clock.system());
        engine.start().toCompletableFuture().join();
        return new Iris(engine);
    }

    /**
     * Returns the name of the flower.
     *
     * @param measures sepal length, sepal width, petal length, petal width, in cm
     * @throws java.util.concurrent.CompletionException with the engine's {@link ServingException}, if the model did not load or fails
     */
    public String classify(float... measures) {
        // One row. The engine owns the tensor from infer on.
        Tensor input = Tensor.allocate("input", DataType.FP32, Shape.of(1, measures.length));
        input.buffer().asFloatBuffer().put(measures);
        CompletableFuture<InferenceResponse> answer = new CompletableFuture<>();
        engine.infer(
                new InferenceRequest(
                        ModelRef.latest("iris"),
                        "",
                        List.of(input),
                        List.of(),
                        Map.of(),
                        Long.MAX_VALUE,
                        Clock.system().nanos()),
                new ResponseSink() {
                    @Override
                    public void next(InferenceResponse response, boolean last) {
                        answer.complete(response);
                    }

                    @Override
                    public void fail(ServingException e) {
                        answer.completeExceptionally(e);
                    }
                });
        try (InferenceResponse response = answer.join()) {
            for (Tensor output : response.outputs()) {
                if (output.name().equals("label")) {
                    return NAMES.get((int) output.buffer().getLong());
                }
            }
            throw new IllegalStateException("the model has no output 'label'");
        }
    }

    @Override
    public void close() {
        engine.close();
    }
}
