// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.LoadGenerator;
import io.nereid.bench.harness.MeasuredRound;
import io.nereid.bench.harness.NativeTreeLibraries;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerProcess;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Random;
import ml.dmlc.xgboost4j.java.XGBoostError;

/**
 * A table of 1,000 rows and 14 columns of FP64 as an Arrow stream, compared with the same rows as JSON, to the identity
 * model, whose response is a table too, and to a model of 100 trees of depth six; in alternating rounds. The measure is rows
 * per second of the server's CPU time. Stateless.
 */
public final class ArrowScenario implements Scenario {
    private static final String STREAM = "application/vnd.apache.arrow.stream";
    private static final int ROWS = 1000;
    private static final int COLUMNS = 14;
    private static final double LEAST_RATIO = 5;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        String work = "V2 REST, 1,000 rows x 14 columns, Arrow beside JSON, 4 connections";
        if (!LoadGenerator.onPath("wrk")) {
            setting.log("SKIPPED: wrk is not on the PATH");
            return List.of(BenchmarkResult.skipped(work, "wrk is not on the PATH"));
        }
        Path repository = RequestBodies.identity(setting.directory("arrow"));
        setting.directory("arrow/columns/1");
        columns(setting.directory("arrow/columns"));
        String missing = NativeTreeLibraries.load(setting.scratch());
        if (missing.isEmpty()) {
            try {
                NativeTreeLibraries.xgboost(setting.directory("arrow/trees/1").resolve("model.json"), COLUMNS);
            } catch (XGBoostError e) {
                throw new IOException(e);
            }
        }
        List<BenchmarkResult> results = new ArrayList<>();
        try (ServerProcess server = ServerProcess.nereid(setting.distribution(), repository, setting.scratch());
                // the rounds need a second process, whose CPU time is not that of others
                ServerProcess idle = ServerProcess.nothing(server, 0, setting.scratch())) {
            Path text = setting.scratch().resolve("rows.json");
            Path table = setting.scratch().resolve("rows.arrows");
            bodies(server, text, table);
            results.add(measured(setting, server, idle, "m", work + ", identity", text, table, LEAST_RATIO));
            String trees = work + ", XGBoost 100 trees x depth 6";
            results.add(
                    missing.isEmpty()
                            ? measured(setting, server, idle, "trees", trees, text, table, 0)
                            : BenchmarkResult.skipped(trees, missing));
        }
        return results;
    }

    /** A model whose response has the columns of the table: the server itself writes the measured request. */
    private static void columns(Path model) throws IOException {
        StringBuilder config = new StringBuilder("name: \"columns\"\nbackend: \"identity\"\n");
        for (int i = 0; i < COLUMNS; i++) {
            config.append("input { name: \"INPUT" + i + "\" data_type: TYPE_FP64 dims: [ -1 ] }\n")
                    .append("output { name: \"OUTPUT" + i + "\" data_type: TYPE_FP64 dims: [ -1 ] }\n");
        }
        Files.writeString(model.resolve("config.pbtxt"), config);
    }

    private static void bodies(ServerProcess server, Path text, Path table) throws IOException, InterruptedException {
        Random random = new Random(1);
        String[][] values = new String[COLUMNS][ROWS];
        for (int row = 0; row < ROWS; row++) {
            for (int column = 0; column < COLUMNS; column++) {
                values[column][row] = String.format(Locale.ROOT, "%.6f", random.nextDouble());
            }
        }
        StringBuilder rows = new StringBuilder("{\"inputs\":[{\"name\":\"x\",\"shape\":[" + ROWS + "," + COLUMNS
                + "],\"datatype\":\"FP32\",\"data\":[");
        for (int row = 0; row < ROWS; row++) {
            for (int column = 0; column < COLUMNS; column++) {
                rows.append(row + column == 0 ? "" : ",").append(values[column][row]);
            }
        }
        Files.writeString(text, rows.append("]}]}"));
        StringBuilder columns = new StringBuilder("{\"inputs\":[");
        for (int column = 0; column < COLUMNS; column++) {
            columns.append(column == 0 ? "" : ",")
                    .append("{\"name\":\"INPUT" + column + "\",\"shape\":[" + ROWS
                            + "],\"datatype\":\"FP64\",\"data\":[")
                    .append(String.join(",", values[column]))
                    .append("]}");
        }
        HttpResponse<byte[]> response = HttpClient.newHttpClient()
                .send(
                        HttpRequest.newBuilder(URI.create(server.url("/v2/models/columns/infer")))
                                .header("Accept", STREAM)
                                .POST(BodyPublishers.ofString(
                                        columns.append("]}").toString()))
                                .build(),
                        BodyHandlers.ofByteArray());
        if (response.statusCode() != 200) {
            throw new IOException("no table: " + new String(response.body(), StandardCharsets.UTF_8));
        }
        Files.write(table, response.body());
    }

    private static BenchmarkResult measured(
            BenchmarkSettings setting,
            ServerProcess server,
            ServerProcess idle,
            String model,
            String work,
            Path text,
            Path table,
            double leastRatio)
            throws IOException, InterruptedException {
        String path = "/v2/models/" + model + "/infer";
        // A tabular model takes an input of any name.
        LoadGenerator json = new LoadGenerator(false, 4, 1, path, text, List.of("Content-Type", "application/json"));
        LoadGenerator arrow = new LoadGenerator(false, 4, 1, path, table, List.of("Content-Type", STREAM));
        json.run(server, setting.warmup(), setting.scratch());
        arrow.run(server, setting.warmup(), setting.scratch());
        double[] ofJson = new double[setting.rounds()];
        double[] ofArrow = new double[setting.rounds()];
        double p99 = 0;
        for (int i = 0; i < setting.rounds(); i++) {
            setting.log("JSON, then Arrow:");
            ofJson[i] = thousandRows(MeasuredRound.of(json, server, idle, setting));
            MeasuredRound round = MeasuredRound.of(arrow, server, idle, setting);
            ofArrow[i] = thousandRows(round);
            p99 = Math.max(p99, round.p99());
        }
        double ratio = BenchmarkResult.median(ofArrow) / BenchmarkResult.median(ofJson);
        return new BenchmarkResult(
                work,
                BenchmarkResult.spread(ofJson, "k rows/CPU s, JSON"),
                BenchmarkResult.spread(ofArrow, "k rows/CPU s"),
                String.format(Locale.ROOT, "%.2f", ratio),
                String.format(Locale.ROOT, "p99 %.2f ms", p99),
                leastRatio > 0 ? String.format(Locale.ROOT, ">= %.0f x JSON", leastRatio) : "",
                leastRatio > 0 ? BenchmarkResult.verdict(ratio >= leastRatio) : "-");
    }

    /** Thousands of rows for each second of CPU time. */
    private static double thousandRows(MeasuredRound round) {
        return ROWS / round.micros() * 1e3;
    }
}
