// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.engine.loading;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelLocation;
import io.nereid.backend.ModelRequest;
import io.nereid.backend.ModelTraits;
import io.nereid.base.Clock;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.engine.CountedTensors;
import io.nereid.engine.FakeModel;
import io.nereid.engine.options.EngineOptions;
import io.nereid.engine.servable.Client;
import io.nereid.engine.servable.CustomBatchStrategy;
import io.nereid.engine.servable.ModelServable;
import io.nereid.engine.servable.ServableFactory;
import io.nereid.observe.ModelStatisticsSnapshot;
import io.nereid.scheduling.BatchStrategy;
import io.nereid.scheduling.execution.DeviceExecutor;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.InstanceGroup;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.SequenceBatching;
import io.nereid.spi.config.SequenceControl;
import io.nereid.spi.config.SequenceStateConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.spi.config.VersionPolicy;
import io.nereid.spi.config.WarmupInput;
import io.nereid.spi.config.WarmupInput.Data;
import io.nereid.spi.config.WarmupSample;
import io.nereid.spi.config.parameters.LatencyObjective;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.PluginJarBuilder;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.zip.ZipEntry;
import java.util.zip.ZipOutputStream;
import javax.tools.ToolProvider;
import org.jspecify.annotations.Nullable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ModelLoaderTest {
    private static final ServableId ID = new ServableId("m", 1);

    private final CountedTensors tensors = new CountedTensors();
    private final DeviceExecutor pool = new DeviceExecutor("test", 4);
    private final List<String> seen = Collections.synchronizedList(new ArrayList<>());
    private final List<FakeModel> models = new ArrayList<>();
    private @Nullable ServableFactory servables;
    private @Nullable CountDownLatch inside;
    private @Nullable CountDownLatch gate;

    @TempDir
    Path directory;

    @BeforeEach
    void files() throws IOException {
        Files.createDirectories(directory.resolve("1"));
        Files.writeString(directory.resolve("1/model.fake"), "weights");
        Files.writeString(directory.resolve("config.pbtxt"), "name: 'm'");
        servables = new ServableFactory(pool, EngineOptions.of(directory), List.of(), Clock.system());
    }

    @AfterEach
    void nothingIsLeft() {
        servables.close();
        pool.close();
        tensors.assertAllFreed();
    }

    @Test
    void everyInstanceIsWarmedWithEverySampleAndItsCountWithoutStatistics() throws Exception {
        Files.createDirectories(directory.resolve("warmup"));
        Files.write(directory.resolve("warmup/data"), new byte[] {9, 0, 0, 0});
        ModelLoader loader = loader(config(2, 4)
                .warmups(List.of(
                        new WarmupSample("zeros", 1, 0, Map.of("IN", input(Data.ZERO, ""))),
                        new WarmupSample("skipped", 0, 5, Map.of("IN", input(Data.ZERO, ""))),
                        new WarmupSample("file", 3, 2, Map.of("IN", input(Data.FILE, "data")))))
                .build());
        ModelServable servable = (ModelServable) loader.load();
        loader.warm();
        assertThat(seen)
                .containsExactly(
                        "IN[1,1] 0", "IN[1,1] 0", "IN[3,1] 9 9 9", "IN[3,1] 9 9 9", "IN[3,1] 9 9 9", "IN[3,1] 9 9 9");
        assertThat(models.get(0).invocations).as("instances").hasValue(2);
        ModelStatisticsSnapshot report = servable.report();
        assertThat(report.executions()).isZero();
        assertThat(report.success().count()).isZero();
        assertThat(report.lastInferenceMillis()).isZero();
        assertThat(servable.loadNanos()).isPositive();
        loader.unload();
        assertThat(models.get(0).closed).isTrue();
    }

    @Test
    void randomDataAreTheSameEveryTimeAndTextsAreEmpty() throws Exception {
        ModelConfig config = ModelConfig.builder("m")
                .platform("fake")
                .backend("fake")
                .maxBatchSize(0)
                .inputs(List.of(
                        new TensorSpec("IN", DataType.INT32, Shape.of(2)),
                        new TensorSpec("TEXT", DataType.BYTES, Shape.of(2))))
                .outputs(List.of(new TensorSpec("OUT", DataType.INT32, Shape.of(2))))
                .instances(1)
                .warmups(List.of(new WarmupSample(
                        "r",
                        1,
                        2,
                        Map.of(
                                "TEXT", new WarmupInput(DataType.BYTES, Shape.of(2), Data.RANDOM, ""),
                                "IN", new WarmupInput(DataType.INT32, Shape.of(2), Data.RANDOM, "")))))
                .build();
        ModelLoader loader = loader(config);
        loader.load();
        loader.warm();
        assertThat(seen).hasSize(2);
        assertThat(seen.get(0)).isEqualTo(seen.get(1)).startsWith("IN[2] ").endsWith(" TEXT[2] 0 0");
        loader.unload();
    }

    @Test
    void aModelWithSequencesIsWarmedWithZeroControlsAndStatesUnlessTheSampleDefinesThem() throws Exception {
        SequenceBatching sequence = new SequenceBatching(
                new SequenceBatching.Direct(Duration.ZERO, 0),
                Duration.ofSeconds(1),
                List.of(
                        new SequenceControl("START", SequenceControl.Kind.START, DataType.INT32, 0, 1),
                        new SequenceControl("READY", SequenceControl.Kind.READY, DataType.INT32, 0, 1)),
                List.of(new SequenceStateConfig("S_IN", "S_OUT", DataType.INT32, Shape.of(-1), null, false)),
                false);
        Files.createDirectories(directory.resolve("warmup"));
        Files.write(directory.resolve("warmup/one"), new byte[] {1, 0, 0, 0});
        Map<String, WarmupInput> inputs = new LinkedHashMap<>();
        inputs.put("READY", input(Data.FILE, "one"));
        inputs.put("IN", input(Data.ZERO, ""));
        ModelLoader loader = loader(config(1, 2)
                .batching(null)
                .sequence(sequence)
                .warmups(List.of(new WarmupSample("s", 1, 1, inputs)))
                .build());
        loader.load();
        loader.warm();
        assertThat(seen).containsExactly("IN[1,1] 0 READY[1,1] 1 START[1,1] 0 S_IN[1,1] 0");
        loader.unload();
    }

    @Test
    void aModelThatTakesRequestsIsWarmedUntilItHasAnswered() {
        List<ModelRequest> answered = new ArrayList<>();
        ModelConfig config = config(1, 4)
                .decoupled(true)
                .warmups(List.of(new WarmupSample("w", 2, 1, Map.of("IN", input(Data.ZERO, "")))))
                .build();
        ModelLoader loader = loader(config, new FakeModel(config, requests -> {
            answered.addAll(requests);
            requests.forEach(ModelRequest::finish);
        }));
        loader.load();
        loader.warm();
        assertThat(answered).hasSize(2);
        loader.unload();
    }

    @Test
    void aSampleThatCannotBeRunFailsTheLoadWithItsName() throws Exception {
        failsToWarm(
                new WarmupSample(
                        "open", 1, 1, Map.of("IN", new WarmupInput(DataType.INT32, Shape.of(-1), Data.ZERO, ""))),
                "warmup setting expects all variable-size dimensions are specified for input 'IN'");
        failsToWarm(new WarmupSample("none", 1, 1, Map.of()), "model_warmup 'none' must specify 'inputs'");
        failsToWarm(
                new WarmupSample("other", 1, 1, Map.of("IN", input(Data.ZERO, ""), "IM", input(Data.ZERO, ""))),
                "failed to run warmup sample 'other': unexpected inference input 'IM' for model 'm'");
        failsToWarm(
                new WarmupSample("large", 5, 1, Map.of("IN", input(Data.ZERO, ""))),
                "model_warmup 'large' has batch_size 5 (expected: <= 4)");
        failsToWarm(new WarmupSample("absent", 1, 1, Map.of("IN", input(Data.FILE, "absent"))), "absent");
        Files.createDirectories(directory.resolve("warmup"));
        Files.write(directory.resolve("warmup/short"), new byte[3]);
        failsToWarm(
                new WarmupSample("short", 1, 1, Map.of("IN", input(Data.FILE, "short"))),
                "warmup setting expects 4 bytes, but the data provided from short only has 3 bytes");
        Files.write(directory.resolve("warmup/bad"), new byte[] {-1, -1, -1, -1});
        failsToWarm(
                new WarmupSample("bad", 2, 1, Map.of("IN", input(Data.FILE, "bad"))),
                "failed to run warmup sample 'bad': negative");
    }

    private void failsToWarm(WarmupSample sample, String text) {
        ModelLoader loader = loader(config(1, 4).warmups(List.of(sample)).build());
        assertThatThrownBy(() -> {
                    loader.load();
                    loader.warm();
                })
                .hasMessageContaining(text)
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
        loader.unload();
    }

    @Test
    void anotherNumberOfInstancesIsTakenOverWithoutLoading() throws Exception {
        inside = new CountDownLatch(3);
        gate = new CountDownLatch(1);
        ModelLoader loader = loader(config(1, 4).batching(null).build());
        ModelServable servable = (ModelServable) loader.load();
        loader.warm();
        ModelLoader next = loader(config(3, 4)
                .batching(null)
                .versionPolicy(new VersionPolicy(VersionPolicy.Kind.ALL, 0, List.of()))
                .build());
        assertThat(loader.updateInPlace(next)).isTrue();
        assertThat(loader.fingerprint()).isEqualTo(next.fingerprint());
        assertThat(models).as("nothing is loaded").hasSize(1);
        assertThat(servable.config().instances()).isEqualTo(3);
        assertThat(servable.config().versionPolicy().kind()).isEqualTo(VersionPolicy.Kind.ALL);
        assertThat(servable.config().document().get("instance_group").toString())
                .contains("count=3");
        Client client = new Client(servable, Clock.system());
        for (int i = 0; i < 3; i++) {
            client.send(List.of(tensors.ints("IN", Shape.of(1, 1), i)));
        }
        assertThat(inside.await(5, TimeUnit.SECONDS)).as("three runs at once").isTrue();
        gate.countDown();
        for (int i = 0; i < 3; i++) {
            assertThat(client.nextText()).startsWith("OUT ");
        }
        assertThat(loader.updateInPlace(loader(config(1, 4)
                        .batching(null)
                        .versionPolicy(new VersionPolicy(VersionPolicy.Kind.ALL, 0, List.of()))
                        .build())))
                .isTrue();
        client.send(List.of(tensors.ints("IN", Shape.of(1, 1), 7)));
        assertThat(client.nextText()).isEqualTo("OUT 7.");
        client.assertNothingUnderWay();
        loader.unload();
        assertThat(models.get(0).closedInvocations)
                .hasValue(models.get(0).invocations.get());
    }

    @Test
    void anotherBatchingIsTakenOverWithoutLoading() throws Exception {
        ModelLoader loader = loader(config(1, 4)
                .batching(new DynamicBatching(List.of(), Duration.ofHours(1), false))
                .build());
        ModelServable servable = (ModelServable) loader.load();
        loader.warm();
        Client client = new Client(servable, Clock.system());
        client.send(List.of(tensors.ints("IN", Shape.of(1, 1), 1)));
        ModelLoader next = loader(config(1, 4)
                .batching(new DynamicBatching(List.of(2), Duration.ZERO, false))
                .build());
        assertThat(loader.updateInPlace(next)).isTrue();
        assertThat(client.nextText()).as("it waits for others no longer").isEqualTo("OUT 1.");
        assertThat(models).as("nothing is loaded").hasSize(1);
        assertThat(servable.config().batching()).isNotNull();
        assertThat(servable.config().document().get("dynamic_batching").toString())
                .contains("preferred_batch_size=[2]");
        assertThat(loader.updateInPlace(loader(config(1, 4)
                        .batching(new DynamicBatching(List.of(), Duration.ZERO, true))
                        .build())))
                .as("the order of responses")
                .isFalse();
        assertThat(loader.updateInPlace(loader(config(1, 4)
                        .batching(new DynamicBatching(List.of(9), Duration.ZERO, false))
                        .build())))
                .as("a preferred size above the maximum is not valid")
                .isFalse();
        loader.unload();
    }

    private ModelLoader with(Map<String, String> parameters) throws Exception {
        return loader(config(1, 4).batching(null).parameters(parameters).build());
    }

    @Test
    void aLatencyObjectiveBeginsChangesAndEndsWithoutLoading() throws Exception {
        ModelLoader loader = with(Map.of());
        ModelServable servable = (ModelServable) loader.load();
        loader.warm();
        assertThat(servable.objective()).isNull();
        for (String objective : List.of("p99=20ms", "p95=1s")) {
            assertThat(loader.updateInPlace(with(Map.of("slo", objective)))).isTrue();
            assertThat(servable.objective().objective()).isEqualTo(LatencyObjective.parse(objective));
            assertThat(servable.config().document().toString()).contains("slo", objective);
        }
        assertThat(loader.updateInPlace(with(Map.of("slo", "fast")))).isFalse();
        assertThat(loader.updateInPlace(with(Map.of("slo", "p95=1s", "other", "1"))))
                .isFalse();
        assertThat(loader.updateInPlace(with(Map.of()))).isTrue();
        assertThat(servable.objective()).isNull();
        assertThat(models).as("nothing is loaded").hasSize(1);
        loader.unload();
    }

    @Test
    void instancesThatTheBackendHasChosenStay() throws Exception {
        ModelLoader loader = loader(config(1, 4).instanceGroups(List.of()).build());
        ModelServable servable = (ModelServable) loader.load();
        loader.warm();
        assertThat(loader.updateInPlace(loader(config(1, 4)
                        .instanceGroups(List.of())
                        .batching(new DynamicBatching(List.of(), Duration.ofNanos(9000), false))
                        .build())))
                .isTrue();
        assertThat(servable.config().document().get("dynamic_batching").toString())
                .contains("max_queue_delay_microseconds=9");
        loader.unload();
    }

    @Test
    void whateverElseDiffersTakesAReload() throws Exception {
        ModelLoader loader = loader(config(1, 4).build());
        assertThat(loader.updateInPlace(loader(config(2, 4).build())))
                .as("not loaded yet")
                .isFalse();
        ModelServable servable = (ModelServable) loader.load();
        loader.warm();
        String before = loader.fingerprint();
        assertThat(loader.updateInPlace(loader(config(1, 0).build()))).isFalse();
        assertThat(loader.updateInPlace(
                        loader(config(1, 4).parameters(Map.of("a", "b")).build())))
                .isFalse();
        assertThat(loader.updateInPlace(loader(config(1, 4)
                        .instanceGroups(List.of(new InstanceGroup(
                                "m", InstanceGroup.Kind.CPU, 2, List.of(), false, "gold", List.of(), 0)))
                        .build())))
                .as("other processors")
                .isFalse();
        assertThat(loader.updateInPlace(
                        loader(config(1, 4).instanceGroups(List.of()).build())))
                .as("the backend's choice")
                .isFalse();
        Files.writeString(directory.resolve("config.pbtxt"), "name: 'm' # changed");
        Files.createDirectories(directory.resolve("2"));
        Files.writeString(directory.resolve("2/model.fake"), "another version");
        assertThat(loader.updateInPlace(loader(config(2, 4).build())))
                .as("other versions and the configuration are not files of this one")
                .isTrue();
        assertThat(loader.fingerprint()).isNotEqualTo(before);
        Files.writeString(directory.resolve("1/model.fake"), "other weights");
        assertThat(loader.updateInPlace(loader(config(3, 4).build()))).isFalse();
        assertThat(servable.config().instances()).isEqualTo(2);
        loader.unload();
    }

    @Test
    void aBatchingStrategyComesFromAJarOfTheModelAndEndsWithIt() throws Exception {
        jar(directory.resolve("1").resolve(CustomBatchStrategy.FILE), "one", 1);
        ModelLoader loader = loader(config(1, 8).build());
        ModelServable servable = (ModelServable) loader.load();
        inside = new CountDownLatch(1);
        gate = new CountDownLatch(1);
        Client client = new Client(servable, Clock.system());
        client.send(List.of(tensors.ints("IN", Shape.of(1, 1), 0)));
        assertThat(inside.await(5, TimeUnit.SECONDS)).isTrue();
        for (int i = 1; i <= 4; i++) {
            client.send(List.of(tensors.ints("IN", Shape.of(1, 1), i)));
        }
        gate.countDown();
        for (int i = 0; i <= 4; i++) {
            client.nextText();
        }
        assertThat(seen.subList(1, seen.size()))
                .as("two requests per batch, according to the strategy")
                .containsExactly("IN[2,1] 1 2", "IN[2,1] 3 4");
        loader.unload();
        assertThat(System.clearProperty("nereid.test.strategy")).isEqualTo("closed");
    }

    @Test
    void aBatchingStrategyThatCannotBeUsedFailsTheLoad() throws Exception {
        Map<String, String> named = Map.of(CustomBatchStrategy.PARAMETER, "lib/mine.jar");
        failsToLoad(config(1, 8).parameters(named).build(), "parameter TRITON_BATCH_STRATEGY_PATH of model 'm' names ");
        jar(directory.resolve("lib/mine.jar"), "two", 2);
        failsToLoad(
                config(1, 8).parameters(named).build(),
                "batching strategy " + directory + "/lib/mine.jar of model 'm' has 2 providers");
        jar(directory.resolve("lib/mine.jar"), "none", 0);
        failsToLoad(
                config(1, 8).parameters(named).build(),
                "batching strategy " + directory + "/lib/mine.jar of model 'm' has 0 providers");
        failsToLoad(
                config(1, 8).batching(null).parameters(named).build(),
                "model 'm' has a batching strategy, " + directory + "/lib/mine.jar, but no dynamic_batching");
        assertThat(models).allMatch(m -> m.closed);
    }

    @Test
    void aBatchingStrategyForAnotherVersionOfTheApiIsRejected() {
        new PluginJarBuilder()
                .source(
                        "Later",
                        "public class Later implements io.nereid.scheduling.BatchStrategy.Provider { public String"
                                + " name() { return \"later\"; } public io.nereid.scheduling.BatchStrategy"
                                + " open(io.nereid.spi.config.ModelConfig c) { return null; } }")
                .service(BatchStrategy.Provider.class.getName(), "Later")
                .apiVersion("99.0")
                .build(directory.resolve(CustomBatchStrategy.FILE));
        ModelLoader loader = loader(config(1, 8).build());
        assertThatThrownBy(loader::load).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION);
            assertThat(e).hasMessageContaining("was built for version 99.0 of Nereid's plugin API");
        });
        loader.unload();
    }

    @Test
    void aBackendThatWasCompiledAgainstAnotherApiIsNamedWithTheMemberItMisses() {
        ModelLoader loader = loader(config(1, 8).build(), new Backend() {
            @Override
            public String name() {
                return "fake";
            }

            @Override
            public List<String> defaultFiles() {
                return List.of();
            }

            @Override
            public BackendModel load(ModelLocation location, ModelConfig config, BackendContext context) {
                throw new NoSuchMethodError("'int io.nereid.backend.BackendContext.gpus()'");
            }
        });
        assertThatThrownBy(loader::load)
                .isInstanceOf(ServingException.class)
                .hasMessageStartingWith("backend 'fake' was compiled against another version of Nereid's plugin API")
                .hasMessageContaining("'int io.nereid.backend.BackendContext.gpus()'");
        loader.unload();
    }

    private void failsToLoad(ModelConfig config, String text) {
        ModelLoader loader = loader(config);
        assertThatThrownBy(loader::load)
                .hasMessageStartingWith(text)
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
        loader.unload();
    }

    /** A jar with the given number of providers of a strategy that allows two requests per batch. */
    private void jar(Path jar, String name, int providers) throws IOException {
        String source = "public class " + name + " implements io.nereid.scheduling.BatchStrategy.Provider {"
                + " public String name() { return \"" + name + "\"; }"
                + " public io.nereid.scheduling.BatchStrategy open(io.nereid.spi.config.ModelConfig c) {"
                + "  return new io.nereid.scheduling.BatchStrategy() {"
                + "   public Object begin() { return new int[1]; }"
                + "   public boolean include(io.nereid.spi.InferenceJob j, Object s) { return ++((int[]) s)[0] <= 2; }"
                + "   public void end(Object s) {}"
                + "   public void close() { System.setProperty(\"nereid.test.strategy\", \"closed\"); }"
                + "  }; }"
                + " public static class Other extends " + name + " {} }";
        Path classes =
                Files.createDirectories(directory.resolve("../classes-" + name).normalize());
        Path file = classes.resolve(name + ".java");
        Files.writeString(file, source);
        int failed = ToolProvider.getSystemJavaCompiler()
                .run(
                        null,
                        null,
                        null,
                        "-proc:none",
                        "-cp",
                        System.getProperty("surefire.test.class.path", System.getProperty("java.class.path")),
                        file.toString());
        assertThat(failed).isZero();
        Files.createDirectories(jar.getParent());
        try (OutputStream out = Files.newOutputStream(jar);
                ZipOutputStream zip = new ZipOutputStream(out)) {
            zip.putNextEntry(new ZipEntry("META-INF/services/" + BatchStrategy.Provider.class.getName()));
            zip.write((new String[] {"", name, name + "\n" + name + "$Other"}[providers] + "\n").getBytes("UTF-8"));
            for (String type : List.of(name, name + "$1", name + "$Other")) {
                zip.putNextEntry(new ZipEntry(type + ".class"));
                zip.write(Files.readAllBytes(classes.resolve(type + ".class")));
            }
        }
    }

    private static WarmupInput input(Data data, String file) {
        return new WarmupInput(DataType.INT32, Shape.of(1), data, file);
    }

    private static ModelConfig.Builder config(int instances, int maxBatch) {
        return ModelConfig.builder("m")
                .platform("fake")
                .backend("fake")
                .maxBatchSize(maxBatch)
                .batching(new DynamicBatching(List.of(), Duration.ZERO, false))
                .inputs(List.of(new TensorSpec("IN", DataType.INT32, Shape.of(1))))
                .outputs(List.of(new TensorSpec("OUT", DataType.INT32, Shape.of(1))))
                .instances(instances);
    }

    private ModelLoader loader(ModelConfig config) {
        return loader(config, new FakeModel(config, ModelTraits.DEFAULT, this::run));
    }

    private ModelLoader loader(ModelConfig config, FakeModel model) {
        return loader(config, new OneModel(model));
    }

    private ModelLoader loader(ModelConfig config, Backend backend) {
        return new ModelLoader(
                new ModelLocation(ID, directory, directory.resolve("1")),
                config,
                backend,
                "fingerprint " + config.hashCode(),
                new BackendContext(1, directory, Map.of()),
                servables);
    }

    private List<Tensor> run(List<Tensor> in, List<String> out) {
        StringBuilder text = new StringBuilder();
        for (Tensor t : in) {
            text.append(text.isEmpty() ? "" : " ").append(t.name()).append(t.shape());
            for (int v : CountedTensors.ints(t)) {
                text.append(' ').append(v);
                if (v < 0) {
                    throw ServingException.invalidArgument("negative");
                }
            }
        }
        seen.add(text.toString());
        CountDownLatch entered = inside;
        if (entered != null) {
            entered.countDown();
            try {
                if (!gate.await(5, TimeUnit.SECONDS)) {
                    throw new IllegalStateException("the test did not open the gate");
                }
            } catch (InterruptedException e) {
                throw new IllegalStateException(e);
            }
        }
        return FakeModel.identity(in, out);
    }

    /** Loads one model. */
    private final class OneModel implements Backend {
        private final FakeModel model;

        OneModel(FakeModel model) {
            this.model = model;
        }

        @Override
        public String name() {
            return "fake";
        }

        @Override
        public List<String> platforms() {
            return List.of("fake");
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
            models.add(model);
            return model;
        }
    }
}
