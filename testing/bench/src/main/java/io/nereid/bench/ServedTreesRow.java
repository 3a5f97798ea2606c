// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench;

import io.nereid.bench.CompareRow.Round;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import ml.dmlc.xgboost4j.java.XGBoostError;

/**
 * One row for a model of 100 trees, six deep, against the same request to the identity model, over gRPC, in turns. Has no
 * state.
 */
final class ServedTreesRow implements Bench.Row {
    private static final double MAX_RATIO = 1.3;

    @Override
    public List<Figure> measure(Bench.Setting setting) throws IOException, InterruptedException {
        String work = "V2 gRPC raw, one row of 16 floats, XGBoost 100 trees x depth 6, 16 conns x 1";
        // The request is the same for both: a table's only input goes by any name.
        Load load = new Bodies(setting.scratch()).grpcSmall(16, 1);
        String missing = Load.onPath(load.program())
                ? TreeLibraries.load(setting.scratch())
                : load.program() + " is not on the PATH";
        if (!missing.isEmpty()) {
            setting.say("SKIPPED: %s", missing);
            return List.of(Figure.skipped(work, missing));
        }
        Path repository = setting.directory("trees-served");
        try {
            TreeLibraries.xgboost(setting.directory("trees-served/m/1").resolve("model.json"), 16);
        } catch (XGBoostError e) {
            throw new IOException(e);
        }
        List<Double> identity = new ArrayList<>();
        List<Double> trees = new ArrayList<>();
        double p99 = 0;
        try (ServerProcess plain = ServerProcess.nereid(
                        setting.distribution(), Bodies.identity(setting.directory("identity")), setting.scratch());
                ServerProcess scored = ServerProcess.nereid(setting.distribution(), repository, setting.scratch())) {
            load.run(plain, setting.warmup(), setting.scratch());
            load.run(scored, setting.warmup(), setting.scratch());
            for (int i = 0; i < setting.rounds(); i++) {
                setting.say("identity, then trees:");
                identity.add(CompareRow.round(load, plain, scored, setting).micros());
                Round round = CompareRow.round(load, scored, plain, setting);
                trees.add(round.micros());
                p99 = Math.max(p99, round.p99());
            }
        }
        double[] a = identity.stream().mapToDouble(Double::doubleValue).toArray();
        double[] b = trees.stream().mapToDouble(Double::doubleValue).toArray();
        double ratio = Figure.median(b) / Figure.median(a);
        return List.of(new Figure(
                work,
                Figure.spread(a, "us CPU/req, identity"),
                Figure.spread(b, "us CPU/req"),
                String.format(Locale.ROOT, "%.2f", ratio),
                String.format(Locale.ROOT, "p99 %.2f ms", p99),
                String.format(Locale.ROOT, "<= %.2f x identity", MAX_RATIO),
                Figure.verdict(ratio <= MAX_RATIO)));
    }
}
