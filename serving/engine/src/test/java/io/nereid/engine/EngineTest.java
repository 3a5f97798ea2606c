// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backend.ModelTraits;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.options.EngineOptions;
import io.nereid.repository.RepositorySource;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.ServableState.Phase;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.io.UncheckedIOException;
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
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class EngineTest {
    private static final List<TensorSpec> IN = List.of(new TensorSpec("IN0", DataType.FP32, Shape.of(-1)));
    private static final List<TensorSpec> OUT = List.of(new TensorSpec("OUT0", DataType.FP32, Shape.of(-1)));

    @TempDir
    Path root;

    @Test
    void everyModelOfTheRepositoryIsServedAndABrokenOneDoesNotDelayTheOthers() throws Exception {
        model("good", "fine");
        model("bad", "broken weights");
        try (Engine engine = engine(RepositorySource.Mode.NONE)) {
            assertThat(engine.ready()).isFalse();
            join(engine.start());
            assertThat(engine.index())
                    .extracting(m -> m.model() + " " + m.versions().get(0).phase())
                    .containsExactly("bad FAILED", "good AVAILABLE");
            assertThat(engine.index().get(0).versions().get(0).reason()).contains("broken weights");
            assertThat(engine.ready()).as("a model that is not available").isFalse();
            assertThat(engine.ready(ModelRef.latest("good"))).isTrue();
            assertThat(engine.ready(ModelRef.latest("bad"))).isFalse();
            assertThatThrownBy(() -> engine.ready(ModelRef.latest("none")))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND));
            assertThat(infer(engine, "good").get(5, TimeUnit.SECONDS)).containsExactly(1, 2, 3);
            assertThat(failure(infer(engine, "none")).getMessage())
                    .startsWith("Request for unknown model: 'none' is not found");
        }
    }

    @Test
    void aModelIsLoadedAndUnloadedOnRequest() throws Exception {
        model("m", "fine");
        try (Engine engine = engine(RepositorySource.Mode.EXPLICIT)) {
            join(engine.start());
            assertThat(engine.index()).extracting(m -> m.model() + m.versions()).containsExactly("m[]");
            assertThat(engine.ready())
                    .as("no model is aspired, so none is missing")
                    .isTrue();
            join(engine.load("m"));
            assertThat(infer(engine, "m").get(5, TimeUnit.SECONDS)).hasSize(3);
            join(engine.unload("m"));
            assertThat(failure(infer(engine, "m")).code()).isEqualTo(ErrorCode.NOT_FOUND);
            join(engine.load("m"));
            assertThat(infer(engine, "m").get(5, TimeUnit.SECONDS)).hasSize(3);
            assertThatThrownBy(() -> join(engine.load("none"))).hasRootCauseInstanceOf(ServingException.class);
        }
    }

    @Test
    void aReloadThatFailsLeavesTheOldModelServing() throws Exception {
        model("m", "fine");
        try (Engine engine = engine(RepositorySource.Mode.EXPLICIT)) {
            join(engine.start());
            join(engine.load("m"));
            model("m", "broken weights");
            assertThatThrownBy(() -> join(engine.load("m")))
                    .hasRootCauseMessage("load failed for model 'm': version 1 is at UNAVAILABLE state: "
                            + engine.index().get(0).versions().get(0).reason() + ";\n");
            assertThat(infer(engine, "m").get(5, TimeUnit.SECONDS)).hasSize(3);
            assertThat(engine.index().get(0).versions().get(0).phase()).isEqualTo(Phase.AVAILABLE);
        }
    }

    @Test
    void aModelMaySayThatItIsNotReady() throws Exception {
        try (EngineFixture fixture = new EngineFixture(root)) {
            fixture.stored("willing", 1, "fine");
            fixture.stored("unwilling", 1, "unwilling");
            Engine engine = fixture.start();
            assertThat(engine.ready(ModelRef.latest("willing"))).isTrue();
            assertThat(engine.ready(ModelRef.latest("unwilling"))).isFalse();
            assertThat(engine.ready(ModelRef.exact("unwilling", 1))).isFalse();
            assertThat(engine.metadata(ModelRef.latest("unwilling")).inputs()).isNotEmpty();
        }
    }

    @Test
    void beginningToDrainTurnsReadinessFalseButStillServes() throws Exception {
        model("m", "fine");
        try (Engine engine = engine(RepositorySource.Mode.NONE)) {
            join(engine.start());
            assertThat(engine.ready()).isTrue();
            engine.beginDrain();
            assertThat(engine.ready()).isFalse();
            assertThat(infer(engine, "m").get(5, TimeUnit.SECONDS)).hasSize(3);
        }
    }

    @Test
    void statisticsCoverAvailableVersionsOnly() throws Exception {
        model("m", "fine");
        model("other", "fine");
        try (Engine engine = engine(RepositorySource.Mode.EXPLICIT)) {
            join(engine.start());
            assertThat(engine.statistics(null, -1)).isEmpty();
            join(engine.load("m"));
            join(engine.load("other"));
            assertThat(infer(engine, "m").get(5, TimeUnit.SECONDS)).hasSize(3);
            assertThat(engine.statistics(null, -1))
                    .extracting(r ->
                            r.model() + " " + r.version() + " " + r.success().count())
                    .containsExactly("m 1 1", "other 1 0");
            assertThat(engine.statistics("m", 1)).hasSize(1);
            assertThatThrownBy(() -> engine.statistics("m", 2))
                    .hasMessage("requested model version is not available for model 'm'");
            assertThatThrownBy(() -> engine.statistics("none", -1))
                    .hasMessage("requested model 'none' is not available")
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
            assertThat(engine.metrics()).contains("nv_inference_count{model=\"other\",version=\"1\"} 0\n");
            CountDownLatch gone = new CountDownLatch(1);
            engine.onState(s -> {
                if (s.phase() == Phase.GONE) {
                    gone.countDown();
                }
            });
            join(engine.unload("m"));
            assertThat(gone.await(5, TimeUnit.SECONDS)).isTrue();
            assertThatThrownBy(() -> engine.statistics("m", -1)).hasMessage("requested model 'm' is not available");
            assertThat(engine.metrics()).doesNotContain("model=\"m\"");
            join(engine.load("m"));
            assertThat(engine.statistics("m", -1).get(0).success().count())
                    .as("since it was loaded")
                    .isZero();
        }
    }

    @Test
    void theConfigurationComesWithItsDocument() throws Exception {
        model("m", "fine");
        try (Engine engine = engine(RepositorySource.Mode.NONE)) {
            join(engine.start());
            assertThat(engine.config(ModelRef.latest("m")).document())
                    .containsEntry("name", "m")
                    .containsKeys("input", "output", "instance_group", "version_policy");
        }
    }

    private Engine engine(RepositorySource.Mode mode) {
        EngineOptions options = EngineOptions.builder(List.of(root))
                .repository(RepositorySource.Options.DEFAULT.withMode(mode).withSettle(Duration.ZERO))
                .deviceThreads(1)
                .loadThreads(2)
                .maxQueueSize(100)
                .scratch(root)
                .build();
        return new Engine(options, List.of(new FileBackend()), Clock.system());
    }

    private void model(String name, String content) throws IOException {
        Path version = Files.createDirectories(root.resolve(name).resolve("1"));
        Files.writeString(version.resolve("model.fake"), content);
    }

    private static CompletableFuture<float[]> infer(Engine engine, String model) {
        Tensor in = Tensor.allocate("IN0", DataType.FP32, Shape.of(3));
        in.buffer().putFloat(1).putFloat(2).putFloat(3);
        CompletableFuture<float[]> done = new CompletableFuture<>();
        engine.infer(
                new InferenceRequest(ModelRef.latest(model), "", List.of(in), List.of(), Map.of(), Long.MAX_VALUE, 0),
                new ResponseSink() {
                    @Override
                    public void next(InferenceResponse response, boolean last) {
                        float[] values = new float[3];
                        response.outputs().get(0).buffer().asFloatBuffer().get(values);
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

    private static void join(CompletionStage<Void> stage) throws Exception {
        stage.toCompletableFuture().get(10, TimeUnit.SECONDS);
    }

    private static ServingException failure(CompletableFuture<float[]> done) throws Exception {
        try {
            done.get(5, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            return (ServingException) e.getCause();
        }
        throw new AssertionError("answered, but a failure was expected");
    }

    /** Loads any file, unless its content is "broken". */
    private static final class FileBackend implements Backend {
        @Override
        public String name() {
            return "fake";
        }

        @Override
        public List<String> platforms() {
            return List.of("fake_fake");
        }

        @Override
        public List<String> defaultFiles() {
            return List.of("model.fake");
        }

        @Override
        public @Nullable String unavailableReason() {
            return null;
        }

        @Override
        public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
            try {
                String content = Files.readString(source.versionDirectory().resolve("model.fake"));
                if (content.contains("broken")) {
                    throw ServingException.invalidArgument(content);
                }
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            return new FakeModel(
                    config.completed("fake_fake", "fake", 0, IN, OUT, null, 1),
                    ModelTraits.builder().inline(true).build(),
                    FakeModel::identity);
        }
    }
}
