// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench;

import io.nereid.bench.CompareRow.Round;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.locks.LockSupport;

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
        int control = ServerProcess.freePort();
        List<Figure> figures = new ArrayList<>();
        try (ServerProcess alone = ServerProcess.nereid(setting.distribution(), models, setting.scratch());
                ServerProcess behind = ServerProcess.nereid(
                        setting.distribution(),
                        setting.directory("none"),
                        setting.scratch(),
                        "--control",
                        "--control-port=" + control,
                        "--control-directory=" + setting.directory("plane"),
                        "--model-cache=" + setting.directory("cache"))) {
            apply(control, behind, models);
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

    private static void apply(int control, ServerProcess behind, Path models) throws IOException, InterruptedException {
        String service = "{\"apiVersion\":\"serving.kserve.io/v1beta1\",\"kind\":\"InferenceService\","
                + "\"metadata\":{\"name\":\"m\",\"namespace\":\"default\"},\"spec\":{\"predictor\":{\"model\":{"
                + "\"modelFormat\":{\"name\":\"triton\"},\"protocolVersion\":\"v2\",\"storageUri\":\"file://"
                + models.toAbsolutePath() + "\"}}}}";
        HttpClient http = HttpClient.newHttpClient();
        String made =
                "http://127.0.0.1:" + control + "/apis/serving.kserve.io/v1beta1/namespaces/default/inferenceservices";
        HttpResponse<String> created = http.send(
                HttpRequest.newBuilder(URI.create(made))
                        .header("content-type", "application/json")
                        .POST(HttpRequest.BodyPublishers.ofString(service))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
        if (created.statusCode() != 201) {
            throw new IOException("the InferenceService was refused: " + created.body());
        }
        HttpRequest ready = HttpRequest.newBuilder(URI.create(behind.url(PREFIX + "/v2/models/m/ready")))
                .build();
        long due = System.nanoTime() + 30_000_000_000L;
        while (http.send(ready, HttpResponse.BodyHandlers.discarding()).statusCode() != 200) {
            if (System.nanoTime() - due > 0) {
                throw new IOException("the InferenceService did not become ready");
            }
            LockSupport.parkNanos(20_000_000);
        }
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
