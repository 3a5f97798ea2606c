// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.LoadGenerator;
import io.nereid.bench.harness.MeasuredRound;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerProcess;
import io.nereid.bench.harness.ServerSetup;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;

/**
 * The 99 % time of small requests over REST and gRPC at 1, 16 and 64 connections, compared with the no-op server's under the same load, in
 * alternating rounds. Stateless.
 */
public final class TailScenario implements Scenario {
    private static final int[] CONNECTIONS = {1, 16, 64};
    private static final double MOST = 1.3;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        List<BenchmarkResult> results = new ArrayList<>();
        RequestBodies bodies = new RequestBodies(setting.scratch());
        try (ServerProcess nereid = ServerSetup.IDENTITY.start(setting);
                ServerProcess bare = ServerProcess.nothing(nereid, 0, setting.scratch())) {
            for (LoadGenerator small : List.of(bodies.restSmall(), bodies.grpcSmall(1, 1))) {
                for (int connections : CONNECTIONS) {
                    results.add(row(
                            new LoadGenerator(
                                    small.grpc(), connections, 1, small.path(), small.body(), small.headers()),
                            nereid,
                            bare,
                            setting));
                }
            }
            ServerSetup.IDENTITY.check(nereid);
        }
        return results;
    }

    private static BenchmarkResult row(
            LoadGenerator load, ServerProcess nereid, ServerProcess bare, BenchmarkSettings setting)
            throws IOException, InterruptedException {
        String work = String.format(
                Locale.ROOT,
                "V2 %s, 16 floats, %d connections, p99",
                load.grpc() ? "gRPC raw" : "REST JSON",
                load.connections());
        if (!LoadGenerator.onPath(load.program())) {
            setting.log("SKIPPED: %s is not on the PATH", load.program());
            return BenchmarkResult.skipped(work, load.program() + " is not on the PATH");
        }
        List<MeasuredRound> nothing = new ArrayList<>();
        List<MeasuredRound> ours = new ArrayList<>();
        load.run(bare, setting.warmup(), setting.scratch());
        load.run(nereid, setting.warmup(), setting.scratch());
        for (int i = 0; i < setting.rounds(); i++) {
            nothing.add(MeasuredRound.of(load, bare, nereid, setting));
            ours.add(MeasuredRound.of(load, nereid, bare, setting));
        }
        double[] least = of(nothing, MeasuredRound::p99);
        double[] full = of(ours, MeasuredRound::p99);
        double ratio = BenchmarkResult.median(full) / BenchmarkResult.median(least);
        return new BenchmarkResult(
                work,
                BenchmarkResult.spread(least, "ms"),
                BenchmarkResult.spread(full, "ms"),
                String.format(Locale.ROOT, "%.2f", ratio),
                String.format(
                        Locale.ROOT,
                        "p50 %.3f and %.3f ms, %.0f and %.0f req/s",
                        BenchmarkResult.median(of(nothing, MeasuredRound::p50)),
                        BenchmarkResult.median(of(ours, MeasuredRound::p50)),
                        BenchmarkResult.median(of(nothing, MeasuredRound::rate)),
                        BenchmarkResult.median(of(ours, MeasuredRound::rate))),
                String.format(Locale.ROOT, "<= %.1f x do-nothing", MOST),
                BenchmarkResult.verdict(ratio <= MOST));
    }

    private static double[] of(List<MeasuredRound> rounds, ToDoubleFunction<MeasuredRound> value) {
        return rounds.stream().mapToDouble(value).toArray();
    }
}
