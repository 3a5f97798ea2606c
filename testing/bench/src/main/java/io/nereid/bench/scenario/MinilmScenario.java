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
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Sentences per second of {@code minilm}: the server with sixteen clients, compared with the best plain loop.
 * Stateless.
 */
public final class MinilmScenario implements Scenario {
    private static final int CLIENTS = 16;
    private static final double MIN_SHARE = 0.95;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        String work = "minilm, 16 tokens, 16 clients, dynamic batching";
        Path model = setting.examples().resolve("minilm");
        Path file = model.resolve("1").resolve("model.onnx");
        LoadGenerator driven = new RequestBodies(setting.scratch()).minilm(CLIENTS);
        if (!Files.exists(file) || !LoadGenerator.onPath(driven.program())) {
            String why =
                    Files.exists(file) ? driven.program() + " is not on the PATH" : "the build has not fetched " + file;
            setting.log("SKIPPED: %s", why);
            return List.of(BenchmarkResult.skipped(work, why));
        }
        Path repository = setting.directory("minilm");
        StartupScenario.copy(model, repository.resolve("minilm"));
        OnnxRuntimeLoop loop = new OnnxRuntimeLoop(file);
        double[] plain = new double[setting.rounds()];
        double[] ours = new double[setting.rounds()];
        List<OnnxRuntimeLoop.Shape> best;
        double[] plainCpu = new double[setting.rounds()];
        double[] ourCpu = new double[setting.rounds()];
        double p50 = 0;
        long self = ProcessHandle.current().pid();
        try {
            best = best(loop, setting);
            try (ServerProcess server = ServerProcess.nereid(setting.distribution(), repository, setting.scratch())) {
                driven.run(server, setting.warmup(), setting.scratch());
                for (int i = 0; i < setting.rounds(); i++) {
                    for (OnnxRuntimeLoop.Shape shape : best) {
                        double cpu = ProcessStatistics.cpu(self, false);
                        long from = System.nanoTime();
                        double rate = loop.run(shape, setting.seconds());
                        if (rate > plain[i]) {
                            plain[i] = rate;
                            double wall = (System.nanoTime() - from) / 1e9;
                            plainCpu[i] = 1e3 * (ProcessStatistics.cpu(self, false) - cpu) / (rate * wall);
                        }
                    }
                    double before = ProcessStatistics.cpu(server.pid(), false);
                    LoadGenerator.Outcome outcome = driven.run(server, setting.seconds(), setting.scratch());
                    if (outcome.failed() > 0) {
                        throw new IOException(outcome.failed() + " requests failed");
                    }
                    ours[i] = outcome.requests() / outcome.seconds();
                    p50 = outcome.p50();
                    ourCpu[i] = 1e3 * (ProcessStatistics.cpu(server.pid(), false) - before) / outcome.requests();
                    setting.log(
                            "plain loop %.0f/s at %.2f ms CPU, nereid %.0f/s at %.2f ms CPU, p50 %.2f ms",
                            plain[i], plainCpu[i], ours[i], ourCpu[i], p50);
                }
            }
        } catch (OrtException e) {
            throw new IOException("the plain loop failed: " + e.getMessage(), e);
        }
        double share = BenchmarkResult.median(ours) / BenchmarkResult.median(plain);
        return List.of(new BenchmarkResult(
                work,
                BenchmarkResult.spread(plain, "sentences/s") + " (" + best.get(0) + ")",
                BenchmarkResult.spread(ours, "sentences/s"),
                String.format(Locale.ROOT, "%.0f %%", 100 * share),
                String.format(
                        Locale.ROOT,
                        "CPU per sentence %.2f against %.2f ms, p50 %.2f ms",
                        BenchmarkResult.median(ourCpu),
                        BenchmarkResult.median(plainCpu),
                        p50),
                ">= 95 % of the plain loop",
                BenchmarkResult.verdict(share >= MIN_SHARE)));
    }

    /** Returns the three shapes that were fastest in a short trial; each round counts the fastest of them. */
    private static List<OnnxRuntimeLoop.Shape> best(OnnxRuntimeLoop loop, BenchmarkSettings setting)
            throws OrtException, InterruptedException {
        Map<OnnxRuntimeLoop.Shape, Double> rates = new HashMap<>();
        List<OnnxRuntimeLoop.Shape> shapes =
                OnnxRuntimeLoop.shapes(Runtime.getRuntime().availableProcessors());
        for (OnnxRuntimeLoop.Shape shape : shapes) {
            double rate = loop.run(shape, 1);
            setting.log("%-32s %.0f sentences/s", shape, rate);
            rates.put(shape, rate);
        }
        return shapes.stream()
                .sorted(Comparator.comparing(rates::get, Comparator.reverseOrder()))
                .limit(3)
                .toList();
    }
}
