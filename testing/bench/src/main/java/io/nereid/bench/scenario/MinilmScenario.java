// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import ai.onnxruntime.OrtException;
import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.LoadGenerator;
import io.nereid.bench.harness.OnnxRuntimeLoop;
import io.nereid.bench.harness.ProcessStatistics;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * Sentences per second of {@code minilm}: the server with 16 and 64 clients over REST and gRPC, without and with a queue delay, compared
 * with a plain loop that has as many sentences in flight on the same processors. Stateless.
 */
public final class MinilmScenario implements Scenario {
    private static final int[] CLIENTS = {16, 64};
    /** As in the model's configuration. */
    private static final int MAX_BATCH = 32;

    private static final int DELAY_MICROS = 2_000;
    private static final double MIN_SHARE = 0.95;

    /** What one load reached in each round. */
    private record Row(String name, LoadGenerator load, double[] rates, double[] cpu, double[] p50, double[] p99) {
        Row(String name, LoadGenerator load, int rounds) {
            this(name, load, new double[rounds], new double[rounds], new double[rounds], new double[rounds]);
        }

        void measure(int round, ServerProcess server, BenchmarkSettings setting)
                throws IOException, InterruptedException {
            double before = ProcessStatistics.cpu(server.pid(), false);
            LoadGenerator.Outcome outcome = load.run(server, setting.seconds(), setting.scratch());
            if (outcome.failed() > 0) {
                throw new IOException(outcome.failed() + " requests failed: " + name);
            }
            rates[round] = outcome.requests() / outcome.seconds();
            cpu[round] = 1e3 * (ProcessStatistics.cpu(server.pid(), false) - before) / outcome.requests();
            p50[round] = outcome.p50();
            p99[round] = outcome.p99();
            setting.log(
                    "%-40s %.0f/s at %.2f ms CPU, p50 %.2f ms, p99 %.2f ms",
                    name, rates[round], cpu[round], p50[round], p99[round]);
        }
    }

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        Path model = setting.examples().resolve("minilm");
        Path file = model.resolve("1").resolve("model.onnx");
        String missing = Files.exists(file) ? null : "the build has not fetched " + file;
        for (String program : List.of("wrk", "h2load")) {
            if (missing == null && !LoadGenerator.onPath(program)) {
                missing = program + " is not on the PATH";
            }
        }
        if (missing != null) {
            setting.log("SKIPPED: %s", missing);
            return List.of(BenchmarkResult.skipped("minilm, 16 tokens, dynamic batching", missing));
        }
        Path eager = repository(setting, "minilm", model, "");
        Path delayed = repository(
                setting,
                "minilm-delay",
                model,
                "dynamic_batching { max_queue_delay_microseconds: " + DELAY_MICROS + " }");
        List<BenchmarkResult> results = new ArrayList<>();
        OnnxRuntimeLoop loop = new OnnxRuntimeLoop(file);
        try (ServerProcess server = ServerProcess.nereid(setting.distribution(), eager, setting.scratch());
                ServerProcess waiting = ServerProcess.nereid(setting.distribution(), delayed, setting.scratch())) {
            for (int clients : CLIENTS) {
                results.addAll(measure(setting, loop, clients, server, waiting));
            }
        } catch (OrtException e) {
            throw new IOException("the plain loop failed: " + e.getMessage(), e);
        }
        return results;
    }

    /** Copies the model into a repository of its own, with another setting of {@code dynamic_batching} if that is not empty. */
    private static Path repository(BenchmarkSettings setting, String name, Path model, String batching)
            throws IOException {
        Path repository = setting.directory(name);
        Path copy = repository.resolve("minilm");
        StartupScenario.copy(model, copy);
        if (!batching.isEmpty()) {
            Path config = copy.resolve("config.pbtxt");
            String text = Files.readString(config);
            String changed = text.replace("dynamic_batching { }", batching);
            if (changed.equals(text)) {
                throw new IOException(config + " has no 'dynamic_batching { }' to replace");
            }
            Files.writeString(config, changed);
        }
        return repository;
    }

    /** Measures loop and server in turns; the two servers have the same load, one after the other. */
    private static List<BenchmarkResult> measure(
            BenchmarkSettings setting, OnnxRuntimeLoop loop, int clients, ServerProcess server, ServerProcess waiting)
            throws IOException, InterruptedException, OrtException {
        int rounds = setting.rounds();
        RequestBodies bodies = new RequestBodies(setting.scratch());
        List<OnnxRuntimeLoop.Shape> shapes =
                OnnxRuntimeLoop.shapes(Runtime.getRuntime().availableProcessors(), clients, MAX_BATCH);
        double[] plain = new double[rounds];
        double[] plainCpu = new double[rounds];
        String best = "";
        Row rest = new Row("REST, " + clients + " clients", bodies.minilm(clients), rounds);
        Row grpc = new Row("gRPC, " + clients + " clients", bodies.minilmGrpc(clients), rounds);
        Row delay =
                new Row("REST, " + clients + " clients, delay of " + DELAY_MICROS / 1_000 + " ms", rest.load, rounds);
        rest.load.run(server, setting.warmup(), setting.scratch());
        grpc.load.run(server, setting.warmup() / 3, setting.scratch());
        delay.load.run(waiting, setting.warmup(), setting.scratch());
        long self = ProcessHandle.current().pid();
        for (int i = 0; i < rounds; i++) {
            for (OnnxRuntimeLoop.Shape shape : shapes) {
                double cpu = ProcessStatistics.cpu(self, false);
                long from = System.nanoTime();
                double rate = loop.run(shape, setting.seconds());
                double wall = (System.nanoTime() - from) / 1e9;
                setting.log("%-40s %.0f/s", shape, rate);
                if (rate > plain[i]) {
                    plain[i] = rate;
                    plainCpu[i] = 1e3 * (ProcessStatistics.cpu(self, false) - cpu) / (rate * wall);
                    best = shape.toString();
                }
            }
            rest.measure(i, server, setting);
            grpc.measure(i, server, setting);
            delay.measure(i, waiting, setting);
        }
        List<BenchmarkResult> results = new ArrayList<>();
        for (Row row : List.of(rest, grpc, delay)) {
            double share = BenchmarkResult.median(row.rates) / BenchmarkResult.median(plain);
            results.add(new BenchmarkResult(
                    "minilm, 16 tokens, " + row.name,
                    BenchmarkResult.spread(plain, "sentences/s") + " (" + best + ")",
                    BenchmarkResult.spread(row.rates, "sentences/s"),
                    String.format(Locale.ROOT, "%.0f %%", 100 * share),
                    String.format(
                            Locale.ROOT,
                            "CPU per sentence %.2f against %.2f ms, p50 %.2f ms, p99 %.2f ms",
                            BenchmarkResult.median(row.cpu),
                            BenchmarkResult.median(plainCpu),
                            BenchmarkResult.median(row.p50),
                            BenchmarkResult.median(row.p99)),
                    ">= 95 % of the plain loop",
                    BenchmarkResult.verdict(share >= MIN_SHARE)));
        }
        return results;
    }
}
