// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.engine.options.EngineOptions;
import io.nereid.observe.RequestTrace;
import io.nereid.repository.FileSystemStoragePathSource;
import io.nereid.repository.RepositorySource;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.Options;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.config.VersionPolicy;
import io.nereid.spi.management.ModelListChange;
import io.nereid.spi.management.ModelListEntry;
import io.nereid.spi.management.VersionLabel;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;

/** An engine over {@link PuppetBackend} models in a directory. Confined to the test, except for engine callbacks. */
public final class EngineFixture implements AutoCloseable {
    final Path root;
    public final PuppetBackend backend = new PuppetBackend();
    public final EngineOptions.Builder options;
    private @Nullable Engine engine;

    public EngineFixture(Path root) throws IOException {
        this.root = root;
        this.options = EngineOptions.builder(List.of(Files.createDirectories(root.resolve("repository"))))
                .repository(RepositorySource.Options.DEFAULT.withSettle(Duration.ZERO))
                .modelListSource(FileSystemStoragePathSource.Options.DEFAULT
                        .withPollInterval(Duration.ZERO)
                        .withSettle(Duration.ZERO))
                .deviceThreads(2)
                .loadThreads(2)
                .reloadTimeout(Duration.ofSeconds(10))
                .scratch(Files.createDirectories(root.resolve("scratch")));
    }

    /** The engine, created at the first call. */
    public Engine engine() {
        Engine e = engine;
        if (e == null) {
            e = new Engine(options.build(), List.of(backend), Clock.system());
            engine = e;
        }
        return e;
    }

    public Engine start() throws Exception {
        get(engine().start());
        return engine();
    }

    /** A version of a model outside the repository. */
    public Path version(String model, long version, String words) throws IOException {
        Path directory =
                Files.createDirectories(root.resolve("models").resolve(model).resolve(Long.toString(version)));
        Files.writeString(directory.resolve("model.puppet"), words);
        return directory;
    }

    /** A version of a model in the repository. */
    public Path stored(String model, long version, String words) throws IOException {
        Path directory = Files.createDirectories(
                root.resolve("repository").resolve(model).resolve(Long.toString(version)));
        Files.writeString(directory.resolve("model.puppet"), words);
        return directory;
    }

    public ModelListEntry served(String model, Map<String, VersionLabel> labels, Long... versions) {
        return new ModelListEntry(
                model,
                root.resolve("models").resolve(model).toString(),
                "tensorflow",
                versions.length == 0 ? null : new VersionPolicy(VersionPolicy.Kind.SPECIFIC, 0, List.of(versions)),
                labels,
                null);
    }

    public ModelListEntry served(String model, Long... versions) {
        return served(model, Map.of(), versions);
    }

    public List<ModelListChange> configure(ModelListEntry... models) throws Exception {
        return get(engine().configure(List.of(models), false));
    }

    /** The error that rejects a whole list. */
    public ServingException refused(ModelListEntry... models) throws Exception {
        return failure(engine().configure(List.of(models), false));
    }

    /** As {@code m 1 AVAILABLE, 2 FAILED; …}, GONE ones left out. */
    public String states() {
        return engine().index().stream()
                .map(m -> m.model()
                        + m.versions().stream()
                                .filter(v -> v.phase() != Phase.GONE)
                                .map(v -> " " + v.id().version() + " " + v.phase())
                                .collect(Collectors.joining(",")))
                .collect(Collectors.joining("; "));
    }

    public static ModelRef label(String model, String label) {
        return new ModelRef(model, ModelRef.ANY, label);
    }

    public static Tensor floats(String name, Shape shape, float... values) {
        Tensor t = Tensor.allocate(name, DataType.FP32, shape);
        for (int i = 0; i < values.length; i++) {
            t.buffer().putFloat(4 * i, values[i]);
        }
        return t;
    }

    /** Infers one row of zeros; the output is the version's number. */
    public float ask(ModelRef model) throws Exception {
        return get(infer(model, "", floats("IN0", Shape.of(1, 1), 0)))[0];
    }

    public ServingException refusal(ModelRef model) throws Exception {
        return failure(infer(model, "", floats("IN0", Shape.of(1, 1), 0)));
    }

    public CompletableFuture<float[]> infer(ModelRef model, String signature, Tensor input) {
        return infer(model, signature, Map.of(), input);
    }

    CompletableFuture<float[]> infer(ModelRef model, String signature, Map<String, Object> parameters, Tensor input) {
        return infer(model, Options.NONE.withSignature(signature), parameters, input);
    }

    /** Infers one row of zeros and traces the request. */
    float ask(ModelRef model, RequestTrace trace) throws Exception {
        return get(infer(model, new Options(0, 0, null, trace), Map.of(), floats("IN0", Shape.of(1, 1), 0)))[0];
    }

    private CompletableFuture<float[]> infer(
            ModelRef model, Options options, Map<String, Object> parameters, Tensor input) {
        CompletableFuture<float[]> done = new CompletableFuture<>();
        var unused = engine().infer(
                        new InferenceRequest(
                                model,
                                "",
                                List.of(input),
                                List.of(),
                                parameters,
                                Long.MAX_VALUE,
                                Clock.system().nanos(),
                                options),
                        new ResponseSink() {
                            @Override
                            public void next(InferenceResponse response, boolean last) {
                                Tensor out = response.outputs().get(0);
                                float[] values = new float[out.byteLength() / 4];
                                out.buffer().asFloatBuffer().get(values);
                                response.close();
                                done.complete(values);
                            }

                            @Override
                            public void fail(ServingException e) {
                                done.completeExceptionally(e);
                            }
                        });
        return done;
    }

    public static <T> T get(CompletionStage<T> stage) throws Exception {
        return stage.toCompletableFuture().get(10, TimeUnit.SECONDS);
    }

    public static ServingException failure(CompletionStage<?> stage) throws Exception {
        try {
            get(stage);
        } catch (ExecutionException e) {
            return (ServingException) e.getCause();
        }
        throw new AssertionError("a failure was expected");
    }

    /** Waits until a condition on the versions' states is true. */
    public void until(BooleanSupplier condition) throws Exception {
        CountDownLatch pause = new CountDownLatch(1);
        for (int i = 0; i < 2000 && !condition.getAsBoolean(); i++) {
            var unused = pause.await(5, TimeUnit.MILLISECONDS);
        }
        if (!condition.getAsBoolean()) {
            throw new AssertionError("it did not come to be: " + states());
        }
    }

    @Override
    public void close() {
        Engine e = engine;
        if (e != null) {
            e.close(Duration.ofSeconds(5));
        }
    }
}
