// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.trees;

import io.github.metarank.lightgbm4j.LGBMException;
import io.nereid.backend.Backend;
import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.NativeTreeLibraries;
import io.nereid.bench.harness.NativeTreeLibraries.Oracle;
import io.nereid.bench.scenario.Scenario;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.ServiceLoader;
import ml.dmlc.xgboost4j.java.XGBoostError;

/**
 * Tree models, compared with the native libraries of XGBoost and LightGBM, on models that these train: 100 trees, 20
 * features, one row and thousands, in alternating rounds. Measures the CPU time of the one thread that each uses;
 * Nereid's includes the output tensors. Stateless.
 */
public final class NativeTreesScenario implements Scenario {
    private static final int FEATURES = 20;
    private static final double LEAST_SECONDS = 0.3;
    /** The target for one row, as a fraction of XGBoost4J's time. */
    private static final double ONE_ROW = 1.0 / 20;

    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException {
        String missing = NativeTreeLibraries.load(setting.scratch());
        if (!missing.isEmpty()) {
            setting.log("SKIPPED: %s", missing);
            return List.of(BenchmarkResult.skipped("trees-native", missing));
        }
        List<BenchmarkResult> results = new ArrayList<>();
        Path directory = setting.directory("trees-native");
        try {
            compare(
                    "xgboost",
                    NativeTreeLibraries.xgboost(directory.resolve("model.json"), FEATURES),
                    setting,
                    results);
            compare(
                    "lightgbm",
                    NativeTreeLibraries.lightgbm(directory.resolve("model.txt"), FEATURES),
                    setting,
                    results);
        } catch (XGBoostError | LGBMException e) {
            throw new IOException(e);
        }
        return results;
    }

    private static void compare(String name, Path file, BenchmarkSettings setting, List<BenchmarkResult> results)
            throws IOException, XGBoostError {
        Backend backend = ServiceLoader.load(Backend.class).stream()
                .map(ServiceLoader.Provider::get)
                .filter(b -> b.name().equals(name))
                .findFirst()
                .orElseThrow(() -> new IOException("there is no backend " + name));
        Path directory = Objects.requireNonNull(file.toAbsolutePath().getParent());
        ModelConfig config = ModelConfig.builder("m")
                .modelFile(String.valueOf(file.getFileName()))
                .build();
        try (BackendModel model = backend.load(
                        new ModelLocation(new ServableId("m", 1), directory, directory),
                        config,
                        new BackendContext(1, setting.scratch(), Map.of()));
                ModelInstance invocation = model.newInstance()) {
            for (int rows : new int[] {1, 1000, 10_000}) {
                float[] x = NativeTreeLibraries.rows(rows, FEATURES, 11);
                boolean xgboost = name.equals("xgboost");
                try (Oracle oracle = xgboost
                                ? NativeTreeLibraries.xgboost(file, x, FEATURES)
                                : NativeTreeLibraries.lightgbm(file, x, FEATURES);
                        Tensor in = tensor(model.config().inputs().get(0), x, rows)) {
                    double differ = difference(invocation, in, oracle, rows);
                    results.add(figure(name, rows, setting, invocation, in, oracle, differ));
                }
            }
        }
    }

    private static BenchmarkResult figure(
            String name,
            int rows,
            BenchmarkSettings setting,
            ModelInstance invocation,
            Tensor in,
            Oracle oracle,
            double differ) {
        List<Tensor> inputs = List.of(in);
        List<String> outputs = List.of("predict");
        Runnable ours = () -> Tensor.closeAll(invocation.run(inputs, outputs));
        double[] own = new double[setting.rounds()];
        double[] theirs = new double[setting.rounds()];
        micros(ours, rows);
        micros(oracle::run, rows);
        for (int round = 0; round < own.length; round++) {
            theirs[round] = micros(oracle::run, rows);
            own[round] = micros(ours, rows);
        }
        double ratio = BenchmarkResult.median(own) / BenchmarkResult.median(theirs);
        double most = rows == 1 && name.equals("xgboost") ? ONE_ROW : 1;
        setting.log(
                "%s, %d rows: %.3f us a row, native %.3f",
                name, rows, BenchmarkResult.median(own), BenchmarkResult.median(theirs));
        return new BenchmarkResult(
                name + ", 100 trees, 20 features, " + rows + (rows == 1 ? " row" : " rows") + ", one thread",
                BenchmarkResult.spread(theirs, "us CPU a row, native"),
                BenchmarkResult.spread(own, "us CPU a row"),
                String.format(Locale.ROOT, "%.3f", ratio),
                String.format(Locale.ROOT, "answers differ by %.1e", differ),
                String.format(Locale.ROOT, "<= %.2f x native", most),
                BenchmarkResult.verdict(ratio <= most && differ <= 1e-6));
    }

    private static Tensor tensor(TensorSpec spec, float[] x, int rows) {
        Tensor tensor = Tensor.allocate(spec.name(), spec.dataType(), Shape.of(rows, FEATURES));
        ByteBuffer to = tensor.buffer();
        for (float v : x) {
            if (spec.dataType() == DataType.FP32) {
                to.putFloat(v);
            } else {
                to.putDouble(v);
            }
        }
        return tensor;
    }

    private static double difference(ModelInstance invocation, Tensor in, Oracle oracle, int rows) {
        oracle.run();
        double most = 0;
        try (Tensor out = invocation.run(List.of(in), List.of("predict")).get(0)) {
            ByteBuffer from = out.buffer();
            for (int row = 0; row < rows; row++) {
                double ours = out.dataType() == DataType.FP32 ? from.getFloat() : from.getDouble();
                most = Math.max(most, Math.abs(ours - oracle.answer(row)));
            }
        }
        return most;
    }

    /** Returns the CPU time per row in microseconds. */
    private static double micros(Runnable run, int rows) {
        long begun = THREADS.getCurrentThreadCpuTime();
        long took = 0;
        long rowsRun = 0;
        int turns = Math.max(1, 1000 / rows);
        while (took < LEAST_SECONDS * 1e9) {
            for (int i = 0; i < turns; i++) {
                run.run();
            }
            rowsRun += (long) turns * rows;
            took = THREADS.getCurrentThreadCpuTime() - begun;
        }
        return took / 1e3 / rowsRun;
    }
}
