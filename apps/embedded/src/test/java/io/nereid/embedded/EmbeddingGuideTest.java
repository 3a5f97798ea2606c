// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.embedded;

import static org.assertj.core.api.Assertions.assertThat;

import io.micrometer.core.instrument.MeterRegistry;
import io.micrometer.core.instrument.simple.SimpleMeterRegistry;
import io.nereid.base.ServingException;
import io.nereid.embedded.micrometer.NereidMetrics;
import io.nereid.embedded.opentelemetry.OpenTelemetryTraces;
import io.opentelemetry.api.OpenTelemetry;
import java.nio.FloatBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;

/** The code of docs/EMBEDDING.md, which a test of the documents compares with it. */
class EmbeddingGuideTest {
    private static final Path MODELS = Path.of("../../examples/models");

    record Flower(double sepalLength, double sepalWidth, double petalLength, double petalWidth) {}

    record Species(long label, float[] probabilities) {}

    @Test
    void theFirstPrediction() {
        Path file = MODELS.resolve("iris/1/model.onnx");
        try (Nereid nereid = Nereid.builder().model("iris", file).build()) {
            Model iris = nereid.model("iris");
            Prediction prediction = iris.predict(new float[][] {{5.1f, 3.5f, 1.4f, 0.2f}});
            long label = prediction.longs("label")[0];
            float[] probabilities = prediction.floats("probabilities");
            assertThat(label).isZero();
            assertThat(probabilities).hasSize(3);
        }
    }

    @Test
    void values() {
        Path file = MODELS.resolve("iris/1/model.onnx");
        FloatBuffer buffer = FloatBuffer.wrap(new float[8]);
        try (Nereid nereid = Nereid.builder().model("iris", file).build()) {
            Model iris = nereid.model("iris");

            Prediction a = iris.predict(Map.of("input", List.of(List.of(5.1, 3.5, 1.4, 0.2))));
            Prediction b = iris.predict(Inputs.named("input", buffer, 2, 4));

            List<Flower> flowers = List.of(new Flower(5.1, 3.5, 1.4, 0.2), new Flower(6.7, 3.0, 5.2, 2.3));
            List<Species> species = iris.predict(flowers, Species.class);

            assertThat(a.longs("label")).hasSize(1);
            assertThat(b.longs("label")).hasSize(2);
            assertThat(species).hasSize(2);
        }
    }

    @Test
    void settingsTimeAndReload() {
        Path file = MODELS.resolve("iris/1/model.onnx");
        float[][] rows = {{5.1f, 3.5f, 1.4f, 0.2f}};
        Nereid nereid = Nereid.builder()
                .model(
                        "iris",
                        file,
                        ModelSettings.DEFAULT.batching(64, Duration.ofMillis(2)).instances(2))
                .reload(Duration.ofSeconds(10))
                .build();
        try (nereid) {
            Model iris = nereid.model("iris").withTimeout(Duration.ofSeconds(5)).withOutputs("label");
            CompletableFuture<Prediction> later = iris.predictAsync(Inputs.only(rows));
            later.thenAcceptAsync(prediction -> assertThat(prediction.longs()).containsExactly(0))
                    .join();
            try {
                Prediction unused = iris.predict(Map.of("inputs", rows));
            } catch (ServingException e) {
                assertThat(e.describe()).contains("no input 'inputs' (expected one of: input)");
            }
        }
    }

    @Test
    void theApplicationsTools() {
        Path file = MODELS.resolve("iris/1/model.onnx");
        MeterRegistry registry = new SimpleMeterRegistry();
        OpenTelemetry openTelemetry = OpenTelemetry.noop();
        Nereid nereid = Nereid.builder()
                .model("iris", file)
                .traces(new OpenTelemetryTraces(openTelemetry))
                .build();
        try (nereid;
                NereidMetrics metrics = new NereidMetrics(nereid)) {
            metrics.bindTo(registry);
            assertThat(registry.find("nereid.requests").functionTimers()).hasSize(2);
        }
    }
}
