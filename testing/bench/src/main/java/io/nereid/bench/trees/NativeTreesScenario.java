// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.trees;

import io.github.metarank.lightgbm4j.LGBMException;
import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.NativeTreeLibraries;
import io.nereid.bench.harness.NativeTreeLibraries.Oracle;
import io.nereid.bench.scenario.Scenario;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import ml.dmlc.xgboost4j.java.XGBoostError;

/**
 * Tree models, compared with the native libraries of XGBoost and LightGBM, on models that these train: 100 trees, 20
 * features, one row and thousands, in alternating rounds. Measures the CPU time of the one thread that each uses;
 * Nereid's includes the output tensors. Stateless.
 */
public final class NativeTreesScenario implements Scenario {
    private static final int FEATURES = 20;
    /** The target for one row, as a fraction of XGBoost4J's time. */
    private static final double ONE_ROW = 1.0 / 20;

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
        try (SingleThreadModel model = SingleThreadModel.load(name, file, setting)) {
            for (int rows : new int[] {1, 1000, 10_000}) {
                float[] x = NativeTreeLibraries.rows(rows, FEATURES, 11);
                boolean xgboost = name.equals("xgboost");
                int[] at = {0};
                try (Oracle oracle = xgboost
                                ? NativeTreeLibraries.xgboost(file, x, FEATURES)
                                : NativeTreeLibraries.lightgbm(file, x, FEATURES);
                        Tensor in = model.input(rows, FEATURES, () -> x[at[0]++])) {
                    double differ = difference(model.predict(in, rows), oracle);
                    results.add(figure(name, rows, setting, model, in, oracle, differ));
                }
            }
        }
    }

    private static BenchmarkResult figure(
            String name,
            int rows,
            BenchmarkSettings setting,
            SingleThreadModel model,
            Tensor in,
            Oracle oracle,
            double differ) {
        double[] own = new double[setting.rounds()];
        double[] theirs = new double[setting.rounds()];
        model.micros(in, rows);
        SingleThreadModel.micros(oracle::run, rows);
        for (int round = 0; round < own.length; round++) {
            theirs[round] = SingleThreadModel.micros(oracle::run, rows);
            own[round] = model.micros(in, rows);
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

    private static double difference(double[] predictions, Oracle oracle) {
        oracle.run();
        double most = 0;
        for (int row = 0; row < predictions.length; row++) {
            most = Math.max(most, Math.abs(predictions[row] - oracle.answer(row)));
        }
        return most;
    }
}
