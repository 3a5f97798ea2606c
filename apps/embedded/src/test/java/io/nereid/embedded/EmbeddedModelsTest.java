// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.assertj.core.api.Assertions.within;

import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.embedded.micrometer.NereidMetrics;
import io.nereid.embedded.opentelemetry.OpenTelemetryTraces;
import io.nereid.spi.InferenceResponse;
import io.nereid.spi.ServableState;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import io.nereid.testkit.PluginJarBuilder;
import io.opentelemetry.api.OpenTelemetry;
import io.opentelemetry.api.trace.Span;
import io.opentelemetry.api.trace.TracerProvider;
import io.opentelemetry.context.Context;
import io.opentelemetry.context.Scope;
import io.opentelemetry.context.propagation.ContextPropagators;
import io.opentelemetry.sdk.trace.ReadWriteSpan;
import io.opentelemetry.sdk.trace.ReadableSpan;
import io.opentelemetry.sdk.trace.SdkTracerProvider;
import io.opentelemetry.sdk.trace.SpanProcessor;
import io.opentelemetry.sdk.trace.data.EventData;
import java.io.IOException;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** The facade with real models: ONNX of the examples, and models in Java. */
class EmbeddedModelsTest {
    private static final Path EXAMPLES = Path.of("../../examples/models");
    private static final Path IRIS = EXAMPLES.resolve("iris/1/model.onnx");
    private static final float[][] ROWS = {{5.1f, 3.5f, 1.4f, 0.2f}, {6.7f, 3.0f, 5.2f, 2.3f}};

    record Flower(double sepalLength, double sepalWidth, float petalLength, float petalWidth) {}

    record Species(long label, float[] probabilities) {}

    record Label(@TensorName("label") int number) {}

    @TempDir
    static Path shared;

    @TempDir
    Path disk;

    private static Nereid nereid;

    @BeforeAll
    static void start() throws IOException {
        Path counter = javaModel(shared.resolve("counter"), "CountTo", """
            public boolean decoupled() { return true; }
            public void execute(List<ModelRequest> requests) {
                for (ModelRequest r : requests) {
                    int n = r.request().inputs().get(0).buffer().getInt();
                    if (n < 0) { r.fail(io.nereid.base.ServingException.invalidArgument("n is " + n)); continue; }
                    for (int i = 1; i <= n && !r.cancelled(); i++) {
                        Tensor t = Tensor.allocate("i", DataType.INT32, Shape.of(1));
                        t.buffer().putInt(i);
                        r.respond(List.of(t), java.util.Map.of("of", (long) n));
                    }
                    r.finish();
                }
            }
            """);
        // Ends when the client cancels.
        Path endless = javaModel(shared.resolve("endless"), "Endless", """
            public void execute(List<ModelRequest> requests) {
                for (ModelRequest r : requests) {
                    while (!r.cancelled()) { java.util.concurrent.locks.LockSupport.parkNanos(1_000_000); }
                    r.fail(io.nereid.base.ServingException.of(io.nereid.base.ErrorCode.CANCELLED, "it was cancelled"));
                }
            }
            """);
        nereid = Nereid.builder()
                .repository(repository(shared.resolve("repository")))
                .model("flowers", IRIS)
                .model("counter", counter)
                .model("endless", endless, ModelSettings.DEFAULT.instances(4))
                .build();
    }

    @AfterAll
    static void stop() {
        if (nereid != null) {
            nereid.close();
            nereid.close();
        }
    }

    private static Path repository(Path to) throws IOException {
        for (String name : List.of("iris", "simple")) {
            Files.createDirectories(to.resolve(name + "/1"));
            for (String file : List.of("config.pbtxt", "1/model.onnx")) {
                Files.copy(EXAMPLES.resolve(name + "/" + file), to.resolve(name + "/" + file));
            }
        }
        Files.copy(EXAMPLES.resolve("iris/labels.txt"), to.resolve("iris/labels.txt"));
        return to;
    }

    private static Path javaModel(Path directory, String name, String body) throws IOException {
        Files.createDirectories(directory);
        String text = """
            package models;
            import io.nereid.backend.ModelRequest;
            import io.nereid.backends.java.JavaRequestModel;
            import io.nereid.spi.config.TensorSpec;
            import io.nereid.tensor.DataType;
            import io.nereid.tensor.Shape;
            import io.nereid.tensor.Tensor;
            import java.util.List;
            public final class NAME implements JavaRequestModel {
                public List<TensorSpec> inputs() { return List.of(new TensorSpec("n", DataType.INT32, Shape.of(1))); }
                public List<TensorSpec> outputs() { return List.of(new TensorSpec("i", DataType.INT32, Shape.of(1))); }
                BODY
            }
            """;
        new PluginJarBuilder()
                .source("models." + name, text.replace("NAME", name).replace("BODY", body))
                .service("io.nereid.backends.java.JavaModel", "models." + name)
                .build(directory.resolve("model.jar"));
        return directory;
    }

    private static void until(String what, BooleanSupplier condition) throws InterruptedException {
        long end = System.nanoTime() + 60_000_000_000L;
        while (!condition.getAsBoolean()) {
            assertThat(System.nanoTime()).as("not within 60 s: " + what).isLessThan(end);
            boolean unused = new CountDownLatch(1).await(10, TimeUnit.MILLISECONDS);
        }
    }

    private static ServingException failure(CompletableFuture<?> of) {
        CompletionException e = catchThrowableOfType(
                CompletionException.class,
                () -> of.orTimeout(60, TimeUnit.SECONDS).join());
        assertThat(e.getCause()).isInstanceOf(ServingException.class);
        return (ServingException) e.getCause();
    }

    // ---- values ----

    @Test
    void arraysMapsBuffersAndTensorsGiveTheSamePrediction() {
        Model iris = nereid.model("iris");
        Prediction first = iris.predict(ROWS);
        assertThat(first.names()).containsExactly("label", "probabilities");
        assertThat(first.longs("label")).containsExactly(0, 2);
        assertThat(first.shape("probabilities")).containsExactly(2, 3);
        float[] expected = first.floats("probabilities");
        assertThat(expected[0] + expected[1] + expected[2]).isCloseTo(1, within(1e-4f));
        assertThat(first.floatRows("probabilities")[1]).containsExactly(expected[3], expected[4], expected[5]);
        assertThat(first.model()).isEqualTo("iris");
        assertThat(first.version()).isEqualTo(1);

        float[] flat = {5.1f, 3.5f, 1.4f, 0.2f, 6.7f, 3.0f, 5.2f, 2.3f};
        double[][] doubles = {{5.1, 3.5, 1.4, 0.2}, {6.7, 3.0, 5.2, 2.3}};
        assertThat(iris.predict(doubles).floats("probabilities")).isEqualTo(expected);
        assertThat(iris.predict(Map.of("input", List.of(List.of(5.1, 3.5, 1.4, 0.2), List.of(6.7, 3, 5.2, 2.3))))
                        .floats("probabilities"))
                .isEqualTo(expected);
        assertThat(iris.predict(Inputs.only(FloatBuffer.wrap(flat), 2, 4)).floats("probabilities"))
                .isEqualTo(expected);
        assertThat(iris.predictAsync(Inputs.named("input", flat, 2, 4))
                        .orTimeout(60, TimeUnit.SECONDS)
                        .join()
                        .floats("probabilities"))
                .isEqualTo(expected);
        assertThat(iris.withOutputs("probabilities").predict(ROWS).names()).containsExactly("probabilities");
        assertThat(iris.predict(Inputs.only(ROWS[0])).longs()).containsExactly(0);
        Tensor tensor = Tensor.allocate("input", DataType.FP32, Shape.of(2, 4));
        tensor.buffer().asFloatBuffer().put(flat);
        try (InferenceResponse response = iris.infer(List.of(tensor))) {
            assertThat(response.outputs()).hasSize(2);
            assertThat(response.outputs().get(0).buffer().getLong()).isZero();
        }
    }

    @Test
    void recordsAreRowsAndResults() {
        Model iris = nereid.model("iris");
        List<Flower> flowers = List.of(new Flower(5.1, 3.5, 1.4f, 0.2f), new Flower(6.7, 3.0, 5.2f, 2.3f));
        List<Species> species = iris.predict(flowers, Species.class);
        assertThat(species).extracting(Species::label).containsExactly(0L, 2L);
        assertThat(species.get(1).probabilities()).hasSize(3);
        assertThat(iris.predict(flowers.get(1), Label.class)).isEqualTo(new Label(2));

        record Sums(int[] OUTPUT0, @TensorName("OUTPUT1") int[] differences) {}
        record Pair(int[] INPUT0, int[] INPUT1) {}
        int[] ones = new int[16];
        Arrays.fill(ones, 1);
        Sums sums = nereid.model("simple").predict(new Pair(ones, ones), Sums.class);
        assertThat(sums.OUTPUT0()).containsOnly(2);
        assertThat(sums.differences()).containsOnly(0);

        record Wide(float a, float b) {}
        assertThatThrownBy(() -> iris.predict(new Wide(1, 2), Label.class))
                .hasMessageContaining("Wide has 2 components")
                .hasMessageContaining("expected: 4");
        record Other(long nothing) {}
        assertThatThrownBy(() -> iris.predict(flowers, Other.class))
                .hasMessageContaining("no output 'nothing' (expected one of: label, probabilities)");
        record Narrow(float probabilities) {}
        assertThatThrownBy(() -> iris.predict(flowers, Narrow.class)).hasMessageContaining("3 values in a row");
    }

    @Test
    void whatIsNotTheModelsIsRefusedWithWhatIs() {
        assertThatThrownBy(() -> nereid.model("irsi"))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND))
                .hasMessageContaining("counter, endless, flowers, iris, simple");
        Model iris = nereid.model("iris");
        assertThatThrownBy(() -> iris.predict(Map.of("x", 1)))
                .hasMessageContaining("no input 'x' (expected one of: input)");
        assertThatThrownBy(() -> iris.predict(new float[][] {{1, 2}})).isInstanceOf(ServingException.class);
        assertThatThrownBy(() -> nereid.model("simple").predict(ROWS))
                .hasMessageContaining("has the inputs INPUT0, INPUT1");
        assertThatThrownBy(() -> iris.withVersion(7).predict(ROWS)).isInstanceOf(ServingException.class);
        assertThatThrownBy(() -> iris.withSignature("s").predict(ROWS)).hasMessageContaining("no signature 's'");
        assertThatThrownBy(() -> iris.withParameter("p", List.of())).hasMessageContaining("expected: a Boolean");
        assertThatThrownBy(() -> iris.predict(ROWS).floats("labels")).hasMessageContaining("expected one of: label");
        assertThatThrownBy(() -> iris.predict(ROWS).strings("label")).hasMessageContaining("output 'label'");
    }

    // ---- time, streams ----

    @Test
    void aTimeLimitCancelsAndSoDoesTheCaller() throws Exception {
        Model endless = nereid.model("endless");
        Model limited = endless.withTimeout(Duration.ofMillis(20));
        ServingException late =
                catchThrowableOfType(ServingException.class, () -> limited.predict(Inputs.only(new int[] {1})));
        assertThat(late.code()).isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        assertThat(failure(limited.predictAsync(Inputs.only(new int[] {1}))).code())
                .isEqualTo(ErrorCode.DEADLINE_EXCEEDED);
        CompletableFuture<Prediction> cancelled = endless.predictAsync(Inputs.only(new int[] {1}));
        assertThat(cancelled.cancel(true)).isTrue();

        CompletableFuture<Throwable> interrupted = new CompletableFuture<>();
        Thread waits = new Thread(() -> {
            try {
                Object unused = endless.predict(Inputs.only(new int[] {1}));
                interrupted.complete(new AssertionError("it answered"));
            } catch (ServingException e) {
                interrupted.complete(Thread.currentThread().isInterrupted() ? e : new AssertionError(e));
            }
        });
        waits.start();
        waits.interrupt();
        assertThat(interrupted.get(60, TimeUnit.SECONDS))
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.CANCELLED));
        until(
                "all instances are free again",
                () -> nereid.statistics().stream()
                        .filter(s -> s.model().equals("endless"))
                        .allMatch(s -> s.failure().count() == 4));
    }

    @Test
    void aDecoupledModelGivesAStream() {
        Model counter = nereid.model("counter");
        try (Stream<Prediction> all = counter.stream(Inputs.only(new int[] {5}))) {
            assertThat(all.map(p -> p.longs()[0])).containsExactly(1L, 2L, 3L, 4L, 5L);
        }
        List<Long> seen = new CopyOnWriteArrayList<>();
        CompletableFuture<Void> done = counter.stream(Inputs.only(new int[] {3}), p -> seen.add(p.longs()[0]));
        done.orTimeout(60, TimeUnit.SECONDS).join();
        assertThat(seen).containsExactly(1L, 2L, 3L);
        assertThat(counter.predict(Inputs.only(new int[] {1})).longs()).containsExactly(1);
        assertThatThrownBy(() -> counter.predict(Inputs.only(new int[] {2})))
                .hasMessageContaining("more than one response");
        assertThatThrownBy(() -> counter.predict(Inputs.only(new int[] {0})))
                .hasMessageContaining("without a response");
        assertThat(failure(counter.predictAsync(Inputs.only(new int[] {2})))).hasMessageContaining("more than one");
        try (Stream<Prediction> failing = counter.stream(Inputs.only(new int[] {-1}))) {
            assertThatThrownBy(failing::toList).hasMessageContaining("n is -1");
        }
        CompletableFuture<Void> stopped = counter.stream(Inputs.only(new int[] {1_000_000_000}), p -> {
            throw new IllegalStateException("enough");
        });
        assertThatThrownBy(() -> stopped.orTimeout(60, TimeUnit.SECONDS).join()).hasMessageContaining("enough");
        try (Stream<Prediction> some = counter.stream(Inputs.only(new int[] {100_000}))) {
            assertThat(some.limit(2).count()).isEqualTo(2);
        }
    }

    // ---- life ----

    @Test
    void aModelIsReplacedWhileItServesAndABrokenFileChangesNothing() throws Exception {
        Path file = disk.resolve("model.onnx");
        Files.copy(IRIS, file);
        List<String> phases = new CopyOnWriteArrayList<>();
        try (Nereid own = Nereid.builder()
                .model("m", file)
                .reload(Duration.ofMillis(50))
                .onState(state -> phases.add(state.phase() + ""))
                .build()) {
            assertThat(own.isReady()).isTrue();
            Model m = own.model("m");
            assertThat(m.predict(ROWS).names()).contains("label");
            long loads = phases.stream().filter("AVAILABLE"::equals).count();
            own.reload("m");
            assertThat(phases.stream().filter("AVAILABLE"::equals).count())
                    .as("the same files are not loaded again")
                    .isEqualTo(loads);

            Path other = disk.resolve("other.onnx");
            Files.copy(EXAMPLES.resolve("simple/1/model.onnx"), other);
            Files.move(other, file, StandardCopyOption.REPLACE_EXISTING);
            until("the changed file is served", () -> m.metadata().inputs().size() == 2);

            Path broken = Files.writeString(disk.resolve("broken.onnx"), "this is not a model");
            assertThatThrownBy(() -> own.put("m", broken)).isInstanceOf(ServingException.class);
            assertThat(m.metadata().inputs()).hasSize(2);
            own.put("m", IRIS);
            assertThat(m.predict(ROWS).longs("label")).containsExactly(0, 2);

            own.put("second", IRIS, ModelSettings.DEFAULT.batching(8, Duration.ZERO));
            assertThat(own.model("second").predict(ROWS).longs("label")).containsExactly(0, 2);
            assertThat(own.remove("second")).isTrue();
            assertThat(own.remove("second")).isFalse();
            until(
                    "it is gone",
                    () -> own.models().stream()
                            .filter(status -> status.model().equals("second"))
                            .allMatch(status -> status.versions().stream()
                                    .noneMatch(v -> v.phase() == ServableState.Phase.AVAILABLE)));
        }
    }

    @Test
    void aModelThatCannotBeLoadedEndsTheStartUnlessThatIsAllowed() throws Exception {
        Path broken = Files.writeString(disk.resolve("broken.onnx"), "this is not a model");
        Path unknown = Files.writeString(disk.resolve("model.xyz"), "?");
        assertThatThrownBy(() -> Nereid.builder()
                        .model("good", IRIS)
                        .model("bad", broken)
                        .model("odd", unknown)
                        .build())
                .isInstanceOfSatisfying(
                        ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.FAILED_PRECONDITION))
                .hasMessageContaining("model 'bad'")
                .hasMessageContaining("broken.onnx")
                .hasMessageContaining("model 'odd'");
        try (Nereid some = Nereid.builder()
                .model("good", IRIS)
                .model("bad", broken)
                .failOnModelError(false)
                .build()) {
            assertThat(some.model("good").predict(ROWS).longs("label")).containsExactly(0, 2);
            assertThat(some.isReady()).isFalse();
        }
        assertThatThrownBy(() -> Nereid.builder().model("m", disk.resolve("none")))
                .hasMessageContaining("does not exist");
        assertThatThrownBy(() -> Nereid.builder().repository(disk.resolve("none")))
                .hasMessageContaining("not a directory");
        assertThatThrownBy(() -> Nereid.builder().backends(List.of()).build())
                .hasMessageContaining("not a single backend");
    }

    @Test
    void twoOfThemShareNothingAndLeaveNoThread() throws Exception {
        List<Thread> before = List.copyOf(Thread.getAllStackTraces().keySet());
        try (Nereid one = Nereid.builder().model("m", IRIS).build();
                Nereid two = Nereid.builder()
                        .model("m", EXAMPLES.resolve("simple/1/model.onnx"))
                        .build()) {
            assertThat(one.model("m").metadata().inputs()).hasSize(1);
            assertThat(two.model("m").metadata().inputs()).hasSize(2);
            Model m = one.model("m");
            one.close();
            assertThatThrownBy(() -> m.predict(ROWS)).isInstanceOf(ServingException.class);
            int[] ones = new int[16];
            assertThat(two.model("m")
                            .predict(Map.of("INPUT0", List.of(ones), "INPUT1", List.of(ones)))
                            .longs())
                    .containsOnly(0);
        }
        until(
                "all threads have ended",
                () -> Thread.getAllStackTraces().keySet().stream()
                        .filter(t -> !before.contains(t) && t.isAlive())
                        .noneMatch(t -> t.getName().startsWith("device")
                                || t.getName().startsWith("nereid")
                                || t.getName().startsWith("load")
                                || t.getName().startsWith("control")));
    }

    // ---- the application's tools ----

    @Test
    void theApplicationsRegistryShowsTheCounters() throws Exception {
        SimpleMeterRegistry registry = new SimpleMeterRegistry();
        try (Nereid own = Nereid.builder().model("m", IRIS).build();
                NereidMetrics metrics = new NereidMetrics(own)) {
            metrics.bindTo(registry);
            Object unused = own.model("m").predict(ROWS);
            until(
                    "the request is counted",
                    () -> registry.get("nereid.requests")
                                    .tags("model", "m", "version", "1", "outcome", "success")
                                    .functionTimer()
                                    .count()
                            == 1);
            assertThat(registry.get("nereid.inferences")
                            .tag("model", "m")
                            .functionCounter()
                            .count())
                    .isEqualTo(2);
            assertThat(registry.get("nereid.compute").functionTimer().totalTime(TimeUnit.NANOSECONDS))
                    .isPositive();
            assertThat(registry.get("nereid.waiting").gauge().value()).isZero();
            own.put("n", IRIS);
            until(
                    "the new model has meters",
                    () -> registry.find("nereid.inferences").tag("model", "n").functionCounter() != null);
            own.remove("n");
            until(
                    "its meters are gone",
                    () -> registry.find("nereid.inferences").tag("model", "n").functionCounter() == null);
        }
        assertThat(registry.getMeters()).isEmpty();
    }

    @Test
    void theApplicationsTracesHaveASpanForEachPrediction() throws Exception {
        List<ReadableSpan> ended = new CopyOnWriteArrayList<>();
        SdkTracerProvider provider = SdkTracerProvider.builder()
                .addSpanProcessor(new SpanProcessor() {
                    @Override
                    public void onStart(Context parent, ReadWriteSpan span) {}

                    @Override
                    public boolean isStartRequired() {
                        return false;
                    }

                    @Override
                    public void onEnd(ReadableSpan span) {
                        ended.add(span);
                    }

                    @Override
                    public boolean isEndRequired() {
                        return true;
                    }
                })
                .build();
        OpenTelemetry telemetry = new OpenTelemetry() {
            @Override
            public TracerProvider getTracerProvider() {
                return provider;
            }

            @Override
            public ContextPropagators getPropagators() {
                return ContextPropagators.noop();
            }
        };
        try (Nereid own = Nereid.builder()
                .model("m", IRIS)
                .traces(new OpenTelemetryTraces(telemetry))
                .build()) {
            Span outer = provider.get("test").spanBuilder("outer").startSpan();
            try (Scope scope = outer.makeCurrent()) {
                Object unused = own.model("m").withId("r-1").predict(ROWS);
            }
            outer.end();
            until("both spans have ended", () -> ended.size() == 2);
            ReadableSpan span = ended.get(0);
            assertThat(span.getName()).isEqualTo("predict m");
            assertThat(span.getParentSpanContext().getSpanId())
                    .isEqualTo(outer.getSpanContext().getSpanId());
            List<String> events = new ArrayList<>();
            for (EventData event : span.toSpanData().getEvents()) {
                events.add(event.getName());
            }
            assertThat(events).contains("COMPUTE_START", "COMPUTE_END");
            assertThat(span.toSpanData().getAttributes().asMap().toString()).contains("r-1");
            assertThatThrownBy(() -> own.model("m").predict(Map.of("x", 1)));
            assertThatThrownBy(() -> own.model("m").predict(new float[][] {{1}}));
            until("a failed request ends its span", () -> ended.size() == 3);
        }
    }
}
