// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.nereid.backend.Backend;
import io.nereid.backends.sklearn.SklearnBackend;
import io.nereid.backends.trees.XgboostBackend;
import io.nereid.base.Clock;
import io.nereid.base.Threads;
import io.nereid.engine.Engine;
import io.nereid.engine.options.EngineOptions;
import io.nereid.explain.request.Exchange;
import io.nereid.explain.request.ExplainSettings;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Models of XGBoost and scikit-learn, explained through a real engine. */
class ServedModelsTest {
    private static final Path BACKENDS = Path.of("..", "..", "backends");
    private static final String ROWS = "[[0.3,-1,0,2,1,3],[1,null,0.5,0,4,60]]";

    private static final int FEATURES = 4;

    @TempDir
    Path directory;

    private Exchange ask(String model, String body) throws Exception {
        Path repository = directory.resolve("repository");
        place(
                repository,
                "boosted",
                fixture("trees/src/test/resources/models/xgboost", "multi-softprob-gbtree-categories"));
        place(repository, "linear", fixture("sklearn/src/test/resources/models/1.9.1", "linear."));
        List<Backend> backends = List.of(new XgboostBackend(), new SklearnBackend());
        EngineOptions options = EngineOptions.builder(List.of(repository))
                .deviceThreads(2)
                .loadThreads(2)
                .scratch(Files.createDirectories(directory.resolve("scratch")))
                .build();
        ThreadPoolExecutor pool = Threads.pool("explain-test", 2);
        try (Engine engine = new Engine(options, backends, Clock.system())) {
            engine.start().toCompletableFuture().get(30, TimeUnit.SECONDS);
            Exchange exchange = new Exchange(body, model);
            ExplainCodec codec = new ExplainCodec(engine, pool, Clock.system(), ExplainSettings.none());
            codec.httpRoutes().get(0).handler().handle(exchange);
            assertThat(exchange.await(Duration.ofSeconds(30))).isTrue();
            return exchange;
        } finally {
            pool.shutdownNow();
        }
    }

    private static Path fixture(String folder, String beginning) throws IOException {
        try (Stream<Path> files = Files.list(BACKENDS.resolve(folder))) {
            return files.filter(f -> f.getFileName().toString().startsWith(beginning))
                    .filter(f ->
                            !f.toString().endsWith(".expected") && !f.toString().endsWith(".contributions"))
                    .findFirst()
                    .orElseThrow();
        }
    }

    private static void place(Path repository, String model, Path file) throws IOException {
        String ending = file.toString().substring(file.toString().lastIndexOf('.'));
        Path version = Files.createDirectories(repository.resolve(model).resolve("1"));
        Path to = version.resolve("model" + ending);
        if (!Files.exists(to)) {
            Files.copy(file, to);
        }
    }

    @Test
    void aBoostedModelIsExplainedByItself() throws Exception {
        Exchange x = ask("boosted", "{\"instances\":" + ROWS + "}");
        assertThat(x.tree().get("algorithm")).isEqualTo("tree_shap");
        for (Object each : (List<?>) x.tree().get("explanations")) {
            Map<?, ?> one = (Map<?, ?>) each;
            double[] margins = (double[]) one.get("explained_value");
            double[] said = (double[]) one.get("prediction");
            double sum = Arrays.stream(margins).map(Math::exp).sum();
            for (int o = 0; o < 3; o++) {
                assertThat(Math.exp(margins[o]) / sum).isCloseTo(said[o], within(1e-5));
            }
            assertThat((List<?>) one.get("shap_values")).hasSize(3);
        }
    }

    @Test
    void aLinearModelIsExplainedByItsPredictions() throws Exception {
        // With several background rows, SHAP values of a linear model are those of their mean.
        String instance = "[" + numbers(0.5) + "]";
        String background = "[[" + numbers(0) + "],[" + numbers(1) + "],[" + numbers(-3) + "]]";
        String mean = "[[" + numbers(-2.0 / 3) + "]]";
        String start = "{\"instances\":[" + instance + "],\"parameters\":{\"background\":";
        Exchange x = ask("linear", start + background + "}}");
        assertThat(x.tree().get("algorithm")).isEqualTo("kernel_shap_exact");
        double[] found = (double[]) x.first().get("shap_values");
        double[] wanted = (double[]) ask("linear", start + mean + "}}").first().get("shap_values");
        assertThat(found).containsExactly(wanted, within(1e-9));
        assertThat(Arrays.stream(found).map(Math::abs).sum()).isGreaterThan(0.01);
        assertThat(Arrays.stream(found).sum() + (Double) x.first().get("base_value"))
                .isCloseTo((Double) x.first().get("prediction"), within(1e-9));
    }

    private static String numbers(double from) {
        return IntStream.range(0, FEATURES)
                .mapToObj(i -> String.valueOf(from + i * from))
                .collect(Collectors.joining(","));
    }
}
