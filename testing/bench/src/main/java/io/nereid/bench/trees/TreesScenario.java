// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.trees;

import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.base.Clock;
import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.scenario.Scenario;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Random;
import java.util.ServiceLoader;
import java.util.stream.Stream;

/**
 * The cost of a row in tabular models: one row and a thousand, on one thread, output tensors included. The models are
 * the small ones of the tests, and those in the directory {@code NEREID_BENCH_TABLES}, as
 * {@code BACKEND-NAME.EXTENSION}. Stateless.
 */
public final class TreesScenario implements Scenario {
    private static final int MANY = 1000;
    private static final double LEAST_SECONDS = 0.5;
    private static final double SKLEARN_MICROS = 5;

    /** A model to measure. */
    private record Case(String backend, Path file, double most) {}

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws java.io.IOException {
        Path backends = setting.root().resolve("backends");
        List<Case> cases = new ArrayList<>();
        Path trees = backends.resolve("trees/src/test/resources/models");
        add(cases, "xgboost", trees.resolve("xgboost"), "binary-logistic-gbtree", 0);
        add(cases, "lightgbm", trees.resolve("lightgbm"), "binary-", 0);
        add(cases, "catboost", backends.resolve("catboost/src/test/resources/models"), "deep", 0);
        Path sklearn = backends.resolve("sklearn/src/test/resources/models/1.9.1");
        add(cases, "sklearn", sklearn, "pipeline.", SKLEARN_MICROS);
        add(cases, "sklearn", sklearn, "sgd.", SKLEARN_MICROS);
        String own = System.getenv("NEREID_BENCH_TABLES");
        if (own != null && !own.isEmpty()) {
            try (Stream<Path> files = Files.list(Path.of(own))) {
                for (Path file : files.sorted().toList()) {
                    String name = String.valueOf(file.getFileName());
                    cases.add(new Case(name.substring(0, Math.max(0, name.indexOf('-'))), file, 0));
                }
            }
        }
        List<BenchmarkResult> results = new ArrayList<>();
        for (Case one : cases) {
            Backend backend = null;
            for (Backend candidate : ServiceLoader.load(Backend.class)) {
                backend = candidate.name().equals(one.backend()) ? candidate : backend;
            }
            if (backend == null) {
                results.add(BenchmarkResult.skipped(one.backend(), "the distribution does not have the backend"));
                continue;
            }
            measure(setting, backend, one, results);
        }
        return results;
    }

    private static void add(List<Case> cases, String backend, Path directory, String beginning, double most)
            throws java.io.IOException {
        try (Stream<Path> files = Files.list(directory)) {
            files.filter(f -> String.valueOf(f.getFileName()).startsWith(beginning))
                    .filter(f -> !f.toString().endsWith(".expected"))
                    .filter(f -> !f.toString().endsWith(".contributions"))
                    .sorted()
                    .findFirst()
                    .ifPresent(f -> cases.add(new Case(backend, f, most)));
        }
    }

    private static void measure(BenchmarkSettings setting, Backend backend, Case one, List<BenchmarkResult> results) {
        Path directory =
                java.util.Objects.requireNonNull(one.file().toAbsolutePath().getParent());
        String file = String.valueOf(one.file().getFileName());
        ModelConfig config = ModelConfig.builder("m").modelFile(file).build();
        BackendContext context = new BackendContext(1, setting.scratch(), Map.of());
        try (BackendModel model =
                        backend.load(new ModelLocation(new ServableId("m", 1), directory, directory), config, context);
                ModelInstance invocation = model.newInstance()) {
            for (int rows : new int[] {1, MANY}) {
                double[] micros = new double[setting.rounds()];
                once(invocation, model.config(), rows);
                for (int round = 0; round < micros.length; round++) {
                    micros[round] = once(invocation, model.config(), rows);
                }
                double most = rows == 1 ? one.most() : 0;
                results.add(new BenchmarkResult(
                        one.backend() + " " + file + ", " + rows + (rows == 1 ? " row" : " rows"),
                        "",
                        BenchmarkResult.spread(micros, "us a row"),
                        "",
                        "",
                        most > 0 ? String.format(Locale.ROOT, "<= %.0f us", most) : "",
                        most > 0 ? BenchmarkResult.verdict(BenchmarkResult.median(micros) <= most) : "-"));
            }
        }
    }

    /** Returns microseconds per row. */
    private static double once(ModelInstance invocation, ModelConfig config, int rows) {
        TensorSpec spec = config.inputs().get(0);
        int width = (int) spec.shape().dim(spec.shape().rank() - 1);
        List<String> outputs = List.of(config.outputs().get(0).name());
        Random random = new Random(7);
        try (Tensor in = Tensor.allocate(spec.name(), spec.dataType(), Shape.of(rows, width))) {
            ByteBuffer to = in.buffer();
            for (int i = 0; i < rows * width; i++) {
                if (spec.dataType() == DataType.FP32) {
                    to.putFloat((float) random.nextGaussian());
                } else {
                    to.putDouble(random.nextGaussian());
                }
            }
            List<Tensor> inputs = List.of(in);
            long begun = Clock.system().nanos();
            long took = 0;
            long runs = 0;
            while (took < LEAST_SECONDS * 1e9) {
                for (int i = 0; i < 50; i++) {
                    Tensor.closeAll(invocation.run(inputs, outputs));
                }
                runs += 50;
                took = Clock.system().nanos() - begun;
            }
            return took / 1e3 / runs / rows;
        }
    }
}
