// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.control;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.ControlPlaneServer;
import io.nereid.bench.harness.LoadGenerator;
import io.nereid.bench.harness.MeasuredRound;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerProcess;
import io.nereid.bench.scenario.Scenario;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * The identity model as an InferenceService behind the gateway, compared with the same model served by the engine
 * alone, in alternating rounds. Stateless.
 */
public final class GatewayScenario implements Scenario {
    private static final double MAX_RATIO = 1.15;
    private static final String PREFIX = "/serving/default/m";
    private static final String HOST = "m-default.example.com";

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        Path models = RequestBodies.identity(setting.directory("gateway"));
        RequestBodies bodies = new RequestBodies(setting.scratch());
        LoadGenerator rest = bodies.restSmall();
        LoadGenerator grpc = bodies.grpcSmall(16, 1);
        if (!LoadGenerator.onPath(rest.program()) || !LoadGenerator.onPath(grpc.program())) {
            return List.of(BenchmarkResult.skipped(
                    "gateway", rest.program() + " or " + grpc.program() + " is not on the PATH"));
        }
        List<BenchmarkResult> results = new ArrayList<>();
        try (ServerProcess alone = ServerProcess.nereid(setting.distribution(), models, setting.scratch());
                ControlPlaneServer plane = ControlPlaneServer.start(setting, "plane")) {
            ServerProcess behind = plane.server();
            plane.apply("m", "triton", models, "");
            ControlPlaneServer.await("the InferenceService ready", 30, 20, () -> plane.answers("m"));
            results.add(compare(
                    "InferenceService through the gateway, V2 REST JSON, 16 floats, 16 connections",
                    rest,
                    new LoadGenerator(
                            false,
                            rest.connections(),
                            rest.streams(),
                            PREFIX + rest.path(),
                            rest.body(),
                            rest.headers()),
                    alone,
                    behind,
                    setting));
            List<String> headers = new ArrayList<>(grpc.headers());
            headers.addAll(List.of(":authority", HOST));
            results.add(compare(
                    "InferenceService through the gateway, V2 gRPC raw, 16 floats, 16 conns x 1",
                    grpc,
                    new LoadGenerator(true, grpc.connections(), grpc.streams(), grpc.path(), grpc.body(), headers),
                    alone,
                    behind,
                    setting));
        }
        return results;
    }

    private static BenchmarkResult compare(
            String work,
            LoadGenerator direct,
            LoadGenerator routed,
            ServerProcess alone,
            ServerProcess behind,
            BenchmarkSettings setting)
            throws IOException, InterruptedException {
        direct.run(alone, setting.warmup(), setting.scratch());
        routed.run(behind, setting.warmup(), setting.scratch());
        List<Double> engine = new ArrayList<>();
        List<Double> gateway = new ArrayList<>();
        double p99 = 0;
        for (int i = 0; i < setting.rounds(); i++) {
            engine.add(MeasuredRound.of(direct, alone, behind, setting).micros());
            MeasuredRound round = MeasuredRound.of(routed, behind, alone, setting);
            gateway.add(round.micros());
            p99 = Math.max(p99, round.p99());
        }
        double[] a = engine.stream().mapToDouble(Double::doubleValue).toArray();
        double[] b = gateway.stream().mapToDouble(Double::doubleValue).toArray();
        double ratio = BenchmarkResult.median(b) / BenchmarkResult.median(a);
        return new BenchmarkResult(
                work,
                BenchmarkResult.spread(a, "us CPU/req, engine alone"),
                BenchmarkResult.spread(b, "us CPU/req"),
                String.format(Locale.ROOT, "%.2f", ratio),
                String.format(Locale.ROOT, "p99 %.2f ms", p99),
                String.format(Locale.ROOT, "<= %.2f x the engine alone", MAX_RATIO),
                BenchmarkResult.verdict(ratio <= MAX_RATIO));
    }
}
