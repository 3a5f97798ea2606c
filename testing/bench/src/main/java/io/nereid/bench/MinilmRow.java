// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench;

import ai.onnxruntime.OrtException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Sentences per second of {@code minilm}: the server with sixteen clients against the best plain loop. Has no state. */
final class MinilmRow implements Bench.Row {
    private static final int CLIENTS = 16;
    private static final double MIN_SHARE = 0.95;

    @Override
    public List<Figure> measure(Bench.Setting setting) throws IOException, InterruptedException {
        String work = "minilm, 16 tokens, 16 clients, dynamic batching";
        Path model = setting.examples().resolve("minilm");
        Path file = model.resolve("1").resolve("model.onnx");
        Load driven = new Bodies(setting.scratch()).minilm(CLIENTS);
        if (!Files.exists(file) || !Load.onPath(driven.program())) {
            String why =
                    Files.exists(file) ? driven.program() + " is not on the PATH" : "the build has not fetched " + file;
            setting.say("SKIPPED: %s", why);
            return List.of(Figure.skipped(work, why));
        }
        Path repository = setting.directory("minilm");
        StartRow.copy(model, repository.resolve("minilm"));
        OrtLoop loop = new OrtLoop(file);
        double[] plain = new double[setting.rounds()];
        double[] ours = new double[setting.rounds()];
        List<OrtLoop.Shape> best;
        double[] plainCpu = new double[setting.rounds()];
        double[] ourCpu = new double[setting.rounds()];
        double p50 = 0;
        long self = ProcessHandle.current().pid();
        try {
            best = best(loop, setting);
            try (ServerProcess server = ServerProcess.nereid(setting.distribution(), repository, setting.scratch())) {
                driven.run(server, setting.warmup(), setting.scratch());
                for (int i = 0; i < setting.rounds(); i++) {
                    for (OrtLoop.Shape shape : best) {
                        double cpu = Proc.cpu(self, false);
                        long from = System.nanoTime();
                        double rate = loop.run(shape, setting.seconds());
                        if (rate > plain[i]) {
                            plain[i] = rate;
                            double wall = (System.nanoTime() - from) / 1e9;
                            plainCpu[i] = 1e3 * (Proc.cpu(self, false) - cpu) / (rate * wall);
                        }
                    }
                    double before = Proc.cpu(server.pid(), false);
                    Load.Outcome outcome = driven.run(server, setting.seconds(), setting.scratch());
                    if (outcome.failed() > 0) {
                        throw new IOException(outcome.failed() + " requests failed");
                    }
                    ours[i] = outcome.requests() / outcome.seconds();
                    p50 = outcome.p50();
                    ourCpu[i] = 1e3 * (Proc.cpu(server.pid(), false) - before) / outcome.requests();
                    setting.say(
                            "plain loop %.0f/s at %.2f ms CPU, nereid %.0f/s at %.2f ms CPU, p50 %.2f ms",
                            plain[i], plainCpu[i], ours[i], ourCpu[i], p50);
                }
            }
        } catch (OrtException e) {
            throw new IOException("the plain loop failed: " + e.getMessage(), e);
        }
        double share = Figure.median(ours) / Figure.median(plain);
        return List.of(new Figure(
                work,
                Figure.spread(plain, "sentences/s") + " (" + best.get(0) + ")",
                Figure.spread(ours, "sentences/s"),
                String.format(Locale.ROOT, "%.0f %%", 100 * share),
                String.format(
                        Locale.ROOT,
                        "CPU per sentence %.2f against %.2f ms, p50 %.2f ms",
                        Figure.median(ourCpu),
                        Figure.median(plainCpu),
                        p50),
                ">= 95 % of the plain loop",
                Figure.verdict(share >= MIN_SHARE)));
    }

    /** The three shapes that did best in a short try; each round counts the best of them. */
    private static List<OrtLoop.Shape> best(OrtLoop loop, Bench.Setting setting)
            throws OrtException, InterruptedException {
        Map<OrtLoop.Shape, Double> rates = new HashMap<>();
        List<OrtLoop.Shape> shapes = OrtLoop.shapes(Runtime.getRuntime().availableProcessors());
        for (OrtLoop.Shape shape : shapes) {
            double rate = loop.run(shape, 1);
            setting.say("%-32s %.0f sentences/s", shape, rate);
            rates.put(shape, rate);
        }
        return shapes.stream()
                .sorted(Comparator.comparing(rates::get, Comparator.reverseOrder()))
                .limit(3)
                .toList();
    }
}
