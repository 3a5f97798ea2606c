// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine;

import static org.assertj.core.api.Assertions.assertThat;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backend.ModelTraits;
import io.nereid.base.Clock;
import io.nereid.base.ServingException;
import io.nereid.engine.options.CacheOptions;
import io.nereid.engine.options.EngineOptions;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.repository.RepositorySource;
import io.nereid.spi.InferenceRequest;
import io.nereid.spi.InferenceRequest.RequestedOutput;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ModelRef;
import io.nereid.spi.ResponseSink;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Ensembles and the response cache in the engine, with models that add the number in their file. */
class EnsembleEngineTest {
    private static final List<TensorSpec> IN = List.of(new TensorSpec("IN0", DataType.FP32, Shape.of(2)));
    private static final List<TensorSpec> OUT = List.of(new TensorSpec("OUT0", DataType.FP32, Shape.of(2)));

    @TempDir
    Path root;

    @Test
    void anEnsembleOfThreeModelsAnswersAndCountsLikeAModel() throws Exception {
        adder("a", 1, "");
        adder("b", 10, "");
        adder("c", 100, "");
        ensemble("e", "", "a", "b", "c");
        try (Engine engine = engine(null)) {
            join(engine.start());
            assertThat(engine.ready()).isTrue();
            assertThat(infer(engine, "e", 1, 0)).isEqualTo("112.0");
            assertThat(infer(engine, "e", 2, 0)).isEqualTo("113.0");
            ModelStatisticsSnapshot report = engine.statistics("e", -1).get(0);
            assertThat(report.success().count()).isEqualTo(2);
            assertThat(report.executions()).isEqualTo(2);
            assertThat(report.inferences()).isEqualTo(2);
            assertThat(report.queue().nanos()).isZero();
            long members = 0;
            for (String m : List.of("a", "b", "c")) {
                members += engine.statistics(m, -1).get(0).computeInfer().nanos();
            }
            assertThat(report.computeInfer().nanos()).isEqualTo(members);
            assertThat(engine.metadata(ModelRef.latest("e")).platform()).isEqualTo("ensemble");
        }
    }

    @Test
    void classesHaveTheLabelsOfTheMemberThatGivesTheOutput() throws Exception {
        adder("a", 1, "");
        Files.writeString(root.resolve("a").resolve("labels.txt"), "cat\ndog\n");
        Files.writeString(
                root.resolve("a").resolve("config.pbtxt"),
                "backend: \"adder\"\nmax_batch_size: 8\ninput [{name: \"IN0\" data_type: TYPE_FP32 dims: [2]}]\n"
                        + "output [{name: \"OUT0\" data_type: TYPE_FP32 dims: [2] label_filename: \"labels.txt\"}]\n");
        ensemble("e", "", "a");
        try (Engine engine = engine(null)) {
            join(engine.start());
            assertThat(infer(engine, "e", 3, 1)).isEqualTo("4.000000:0:cat");
        }
    }

    @Test
    void aMemberThatFailsToLoadIsTheReasonWhyItsEnsembleDoes() throws Exception {
        adder("a", 1, "");
        Files.writeString(root.resolve("a/1/model.adder"), "broken weights");
        ensemble("e", "", "a");
        try (Engine engine = engine(null)) {
            join(engine.start());
            String reason = engine.index().stream()
                    .filter(m -> m.model().equals("e"))
                    .findFirst()
                    .orElseThrow()
                    .versions()
                    .get(0)
                    .reason();
            assertThat(reason)
                    .startsWith("ensemble 'e' depends on 'a' which has no loaded version. Model 'a' loading failed with"
                            + " error: version 1 is at UNAVAILABLE state: ")
                    .contains("broken weights");
        }
    }

    @Test
    void equalRequestsAreAnsweredFromTheCacheUntilTheModelIsLoadedAnew() throws Exception {
        adder("a", 1, "response_cache { enable: true }\n");
        ensemble("e", "response_cache { enable: true }\n", "a");
        try (Engine engine = engine(new CacheOptions("local", Map.of("size", "1000000")))) {
            join(engine.start());
            for (int i = 0; i < 3; i++) {
                assertThat(infer(engine, "a", 5, 0)).isEqualTo("6.0");
                assertThat(infer(engine, "e", 5, 0)).isEqualTo("6.0");
                assertThat(infer(engine, "e", 5, 1)).isEqualTo("6.000000:0");
            }
            ModelStatisticsSnapshot report = engine.statistics("a", -1).get(0);
            assertThat(report.success().count())
                    .as("three of clients, two of the ensemble's first runs")
                    .isEqualTo(5);
            assertThat(report.executions()).isEqualTo(1);
            assertThat(report.inferences()).isEqualTo(1);
            assertThat(report.cacheHit().count()).isEqualTo(4);
            assertThat(report.cacheMiss().count()).isEqualTo(1);
            ModelStatisticsSnapshot ensemble = engine.statistics("e", -1).get(0);
            assertThat(ensemble.cacheHit().count()).isEqualTo(4);
            assertThat(ensemble.cacheMiss().count()).isEqualTo(2);

            Files.writeString(root.resolve("a/1/model.adder"), "200");
            join(engine.load("a"));
            assertThat(infer(engine, "a", 5, 0)).isEqualTo("205.0");
            join(engine.load("e"));
            assertThat(infer(engine, "e", 5, 0)).isEqualTo("205.0");
        }
    }

    @Test
    void anEnsembleFollowsItsMembersWithoutBeingLoadedByHand() throws Exception {
        adder("a", 1, "");
        ensemble("e", "response_cache { enable: true }\n", "a");
        try (Engine engine = engine(new CacheOptions("local", Map.of("size", "1000000")))) {
            join(engine.start());
            assertThat(infer(engine, "e", 5, 0)).isEqualTo("6.0");
            Files.writeString(root.resolve("a/1/model.adder"), "200");
            join(engine.load("a"));
            long end = Clock.system().nanos() + TimeUnit.SECONDS.toNanos(10);
            while (!infer(engine, "e", 5, 0).equals("205.0")) {
                assertThat(Clock.system().nanos()).isLessThan(end);
                Thread.onSpinWait();
            }
        }
    }

    @Test
    void anErrorOfAMemberNamesTheEnsembleAndTheRequestOnce() throws Exception {
        adder("a", 1, "");
        ensemble("e", "", "a");
        try (Engine engine = engine(null)) {
            join(engine.start());
            assertThat(infer(engine, "e", -1, 0)).isEqualTo("in ensemble 'e', [request id: r] negative");
        }
    }

    private Engine engine(@Nullable CacheOptions cache) {
        EngineOptions options = EngineOptions.builder(List.of(root))
                .repository(RepositorySource.Options.DEFAULT
                        .withMode(RepositorySource.Mode.EXPLICIT)
                        .withStartModels(List.of("*"))
                        .withSettle(Duration.ZERO))
                .deviceThreads(2)
                .cache(cache)
                .build();
        return new Engine(options, List.of(new AdderBackend()), Clock.system());
    }

    private void adder(String name, int number, String more) throws IOException {
        Path version = Files.createDirectories(root.resolve(name).resolve("1"));
        Files.writeString(version.resolve("model.adder"), "" + number);
        Files.writeString(
                root.resolve(name).resolve("config.pbtxt"),
                "backend: \"adder\"\nmax_batch_size: 8\ninput [{name: \"IN0\" data_type: TYPE_FP32 dims: [2]}]\n"
                        + "output [{name: \"OUT0\" data_type: TYPE_FP32 dims: [2]}]\n" + more);
    }

    private void ensemble(String name, String more, String... members) throws IOException {
        Files.createDirectories(root.resolve(name).resolve("1"));
        StringBuilder text = new StringBuilder("platform: \"ensemble\"\nmax_batch_size: 8\n"
                + "input [{name: \"X\" data_type: TYPE_FP32 dims: [2]}]\n"
                + "output [{name: \"Y\" data_type: TYPE_FP32 dims: [2]}]\n" + more + "ensemble_scheduling { step [");
        for (int i = 0; i < members.length; i++) {
            text.append(i == 0 ? "" : ",")
                    .append("{model_name: \"" + members[i] + "\" model_version: -1 input_map {key: \"IN0\" value: \""
                            + (i == 0 ? "X" : "t" + i) + "\"} output_map {key: \"OUT0\" value: \""
                            + (i == members.length - 1 ? "Y" : "t" + (i + 1)) + "\"}}");
        }
        Files.writeString(root.resolve(name).resolve("config.pbtxt"), text.append("]}\n"));
    }

    /** The first value or class of the response, or the message of the failure. */
    private static String infer(Engine engine, String model, float value, int classes) throws Exception {
        boolean ensemble = model.equals("e");
        Tensor in = Tensor.allocate(ensemble ? "X" : "IN0", DataType.FP32, Shape.of(1, 2));
        in.buffer().putFloat(value).putFloat(0);
        CompletableFuture<String> done = new CompletableFuture<>();
        List<RequestedOutput> wanted = List.of(new RequestedOutput(ensemble ? "Y" : "OUT0", classes));
        engine.infer(
                new InferenceRequest(ModelRef.latest(model), "r", List.of(in), wanted, Map.of(), Long.MAX_VALUE, 0),
                new ResponseSink() {
                    @Override
                    public void next(InferenceResponse response, boolean last) {
                        Tensor t = response.outputs().get(0);
                        byte[] text = new byte[t.byteLength()];
                        t.buffer().get(text);
                        String first = t.dataType() == DataType.FP32
                                ? "" + t.buffer().getFloat(0)
                                : new String(text, 4, t.buffer().getInt(0), StandardCharsets.UTF_8);
                        response.close();
                        done.complete(first);
                    }

                    @Override
                    public void fail(ServingException e) {
                        done.complete(e.getMessage());
                    }
                });
        return done.get(10, TimeUnit.SECONDS);
    }

    private static void join(CompletionStage<Void> stage) throws Exception {
        try {
            stage.toCompletableFuture().get(20, TimeUnit.SECONDS);
        } catch (CompletionException e) {
            throw new AssertionError(e);
        }
    }

    /** Adds the number in the model's file to every element. */
    private static final class AdderBackend implements Backend {
        @Override
        public String name() {
            return "adder";
        }

        @Override
        public List<String> platforms() {
            return List.of("adder");
        }

        @Override
        public List<String> defaultFiles() {
            return List.of("model.adder");
        }

        @Override
        public @Nullable String unavailableReason() {
            return null;
        }

        @Override
        public BackendModel load(ModelLocation source, ModelConfig config, BackendContext context) {
            String content;
            try {
                content = Files.readString(source.versionDirectory().resolve("model.adder"));
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
            if (content.contains("broken")) {
                throw ServingException.invalidArgument(content);
            }
            float number = Float.parseFloat(content);
            return new FakeModel(
                    config.completed("adder", "adder", 8, IN, OUT, DynamicBatching.EAGER, 1),
                    ModelTraits.builder().inline(true).build(),
                    (inputs, outputs) -> {
                        Tensor in = inputs.get(0);
                        Tensor out = Tensor.allocate("OUT0", DataType.FP32, in.shape());
                        for (int i = 0; i < in.byteLength(); i += 4) {
                            float v = in.buffer().getFloat(i);
                            if (v < 0) {
                                out.close();
                                throw ServingException.invalidArgument("negative");
                            }
                            out.buffer().putFloat(i, v + number);
                        }
                        return List.of(out);
                    });
        }
    }
}
