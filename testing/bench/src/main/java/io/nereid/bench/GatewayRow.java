// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench;

import io.nereid.bench.CompareRow.Round;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * The identity model as an InferenceService, behind the gateway, against the same model served by the engine alone, in turns.
 * Has no state.
 */
final class GatewayRow implements Bench.Row {
    private static final double MAX_RATIO = 1.15;
    private static final String PREFIX = "/serving/default/m";
    private static final String HOST = "m-default.example.com";

    @Override
    public List<Figure> measure(Bench.Setting setting) throws IOException, InterruptedException {
        Path models = Bodies.identity(setting.directory("gateway"));
        Bodies bodies = new Bodies(setting.scratch());
        Load rest = bodies.restSmall();
        Load grpc = bodies.grpcSmall(16, 1);
        if (!Load.onPath(rest.program()) || !Load.onPath(grpc.program())) {
            return List.of(Figure.skipped("gateway", rest.program() + " or " + grpc.program() + " is not on the PATH"));
        }
        List<Figure> figures = new ArrayList<>();
        try (ServerProcess alone = ServerProcess.nereid(setting.distribution(), models, setting.scratch());
                Plane plane = Plane.start(setting, "plane")) {
            ServerProcess behind = plane.server();
            plane.apply("m", "triton", models, "");
            Plane.await("the InferenceService ready", 30, 20, () -> plane.answers("m"));
            figures.add(compare(
                    "InferenceService through the gateway, V2 REST JSON, 16 floats, 16 connections",
                    rest,
                    new Load(
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
            figures.add(compare(
                    "InferenceService through the gateway, V2 gRPC raw, 16 floats, 16 conns x 1",
                    grpc,
                    new Load(true, grpc.connections(), grpc.streams(), grpc.path(), grpc.body(), headers),
                    alone,
                    behind,
                    setting));
        }
        return figures;
    }

    private static Figure compare(
            String work, Load direct, Load routed, ServerProcess alone, ServerProcess behind, Bench.Setting setting)
            throws IOException, InterruptedException {
        direct.run(alone, setting.warmup(), setting.scratch());
        routed.run(behind, setting.warmup(), setting.scratch());
        List<Double> engine = new ArrayList<>();
        List<Double> gateway = new ArrayList<>();
        double p99 = 0;
        for (int i = 0; i < setting.rounds(); i++) {
            engine.add(CompareRow.round(direct, alone, behind, setting).micros());
            Round round = CompareRow.round(routed, behind, alone, setting);
            gateway.add(round.micros());
            p99 = Math.max(p99, round.p99());
        }
        double[] a = engine.stream().mapToDouble(Double::doubleValue).toArray();
        double[] b = gateway.stream().mapToDouble(Double::doubleValue).toArray();
        double ratio = Figure.median(b) / Figure.median(a);
        return new Figure(
                work,
                Figure.spread(a, "us CPU/req, engine alone"),
                Figure.spread(b, "us CPU/req"),
                String.format(Locale.ROOT, "%.2f", ratio),
                String.format(Locale.ROOT, "p99 %.2f ms", p99),
                String.format(Locale.ROOT, "<= %.2f x the engine alone", MAX_RATIO),
                Figure.verdict(ratio <= MAX_RATIO));
    }
}
