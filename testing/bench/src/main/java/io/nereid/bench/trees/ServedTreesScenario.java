// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.trees;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.LoadGenerator;
import io.nereid.bench.harness.MeasuredRound;
import io.nereid.bench.harness.NativeTreeLibraries;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerProcess;
import io.nereid.bench.scenario.Scenario;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import ml.dmlc.xgboost4j.java.XGBoostError;

/**
 * A request of one row to a model of 100 trees of depth six, compared with the same request to the identity model, over
 * gRPC, in alternating rounds. Stateless.
 */
public final class ServedTreesScenario implements Scenario {
    private static final double MAX_RATIO = 1.3;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        String work = "V2 gRPC raw, one row of 16 floats, XGBoost 100 trees x depth 6, 16 conns x 1";
        // The same request fits both models: the only input of a tabular model may have any name.
        LoadGenerator load = new RequestBodies(setting.scratch()).grpcSmall(16, 1);
        String missing = LoadGenerator.onPath(load.program())
                ? NativeTreeLibraries.load(setting.scratch())
                : load.program() + " is not on the PATH";
        if (!missing.isEmpty()) {
            setting.log("SKIPPED: %s", missing);
            return List.of(BenchmarkResult.skipped(work, missing));
        }
        Path repository = setting.directory("trees-served");
        try {
            NativeTreeLibraries.xgboost(setting.directory("trees-served/m/1").resolve("model.json"), 16);
        } catch (XGBoostError e) {
            throw new IOException(e);
        }
        List<Double> identity = new ArrayList<>();
        List<Double> trees = new ArrayList<>();
        double p99 = 0;
        try (ServerProcess plain = ServerProcess.nereid(
                        setting.distribution(),
                        RequestBodies.identity(setting.directory("identity")),
                        setting.scratch());
                ServerProcess scored = ServerProcess.nereid(setting.distribution(), repository, setting.scratch())) {
            load.run(plain, setting.warmup(), setting.scratch());
            load.run(scored, setting.warmup(), setting.scratch());
            for (int i = 0; i < setting.rounds(); i++) {
                setting.log("identity, then trees:");
                identity.add(MeasuredRound.of(load, plain, scored, setting).micros());
                MeasuredRound round = MeasuredRound.of(load, scored, plain, setting);
                trees.add(round.micros());
                p99 = Math.max(p99, round.p99());
            }
        }
        double[] a = identity.stream().mapToDouble(Double::doubleValue).toArray();
        double[] b = trees.stream().mapToDouble(Double::doubleValue).toArray();
        double ratio = BenchmarkResult.median(b) / BenchmarkResult.median(a);
        return List.of(new BenchmarkResult(
                work,
                BenchmarkResult.spread(a, "us CPU/req, identity"),
                BenchmarkResult.spread(b, "us CPU/req"),
                String.format(Locale.ROOT, "%.2f", ratio),
                String.format(Locale.ROOT, "p99 %.2f ms", p99),
                String.format(Locale.ROOT, "<= %.2f x identity", MAX_RATIO),
                BenchmarkResult.verdict(ratio <= MAX_RATIO)));
    }
}
