// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import java.io.IOException;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * A server with a thousand tiny ONNX models and requests for each in turn, against a server with one of them; and what an
 * idle model costs. Both have loads of the same kind in turns: A B A B. How much of the difference is that a thousand
 * sessions do not fit into the processor's caches shows a plain loop over as many sessions. Has no state.
 */
final class ModelsRow implements Bench.Row {
    private static final int MODELS = 1000;
    private static final double MIN_SHARE = 0.9;
    private static final int PLAIN_ROUNDS = 5;
    private static final int PLAIN_RUNS = 50_000;

    @Override
    public List<Figure> measure(Bench.Setting setting) throws IOException, InterruptedException {
        String work = "1,000 tiny ONNX models, requests for each in turn, REST, 16 connections";
        Path model = setting.root().resolve("backends/onnx/src/test/resources/models/identity_fp32.onnx");
        Bodies bodies = new Bodies(setting.scratch());
        Load few = bodies.models(1);
        Load many = bodies.models(MODELS);
        if (!Load.onPath(many.program())) {
            setting.say("SKIPPED: %s is not on the PATH", many.program());
            return List.of(Figure.skipped(work, many.program() + " is not on the PATH"));
        }
        Plain plainOne = plain(model, 1);
        Plain plainAll = plain(model, MODELS);
        setting.say(
                "plain loop over one session %.2f us a run, over %d %.2f us and %.1f KB resident a session",
                plainOne.micros, MODELS, plainAll.micros, plainAll.kilobytes);
        double[] fewRate = new double[setting.rounds()];
        double[] manyRate = new double[setting.rounds()];
        double[] loadedRate = new double[setting.rounds()];
        double[] fewCpu = new double[setting.rounds()];
        double[] manyCpu = new double[setting.rounds()];
        try (ServerProcess one =
                        ServerProcess.nereid(setting.distribution(), repository(setting, model, 1), setting.scratch());
                ServerProcess all = ServerProcess.nereid(
                        setting.distribution(), repository(setting, model, MODELS), setting.scratch())) {
            double idle = perModel(one, all);
            double seconds = all.secondsToReady() - one.secondsToReady();
            setting.say(
                    "%d models: ready after %.2f s, with one after %.2f s; %.1f KB resident a model",
                    MODELS, all.secondsToReady(), one.secondsToReady(), idle);
            few.run(one, setting.warmup(), setting.scratch());
            many.run(all, setting.warmup(), setting.scratch());
            for (int i = 0; i < setting.rounds(); i++) {
                double before = Proc.cpu(one.pid(), false);
                Load.Outcome outcome = answered(few.run(one, setting.seconds(), setting.scratch()));
                fewRate[i] = outcome.requests() / outcome.seconds();
                fewCpu[i] = (Proc.cpu(one.pid(), false) - before) * 1e6 / outcome.requests();
                before = Proc.cpu(all.pid(), false);
                outcome = answered(many.run(all, setting.seconds(), setting.scratch()));
                manyRate[i] = outcome.requests() / outcome.seconds();
                manyCpu[i] = (Proc.cpu(all.pid(), false) - before) * 1e6 / outcome.requests();
                outcome = answered(few.run(all, setting.seconds(), setting.scratch()));
                loadedRate[i] = outcome.requests() / outcome.seconds();
                setting.say(
                        "one model %.0f req/s at %.2f us CPU, all %.0f req/s at %.2f us CPU, one of all %.0f req/s",
                        fewRate[i], fewCpu[i], manyRate[i], manyCpu[i], loadedRate[i]);
            }
            double used = perModel(one, all);
            setting.say("after the load %.1f KB resident a model", used);
            double share = Figure.median(manyRate) / Figure.median(fewRate);
            return List.of(new Figure(
                    work,
                    Figure.spread(fewRate, "req/s, one model"),
                    Figure.spread(manyRate, "req/s"),
                    String.format(Locale.ROOT, "%.2f", share),
                    String.format(
                            Locale.ROOT,
                            "CPU %.2f against %.2f us/req (plain loop %.2f against %.2f us/run); "
                                    + "one of the loaded alone %.0f req/s; "
                                    + "%.0f KB a loaded model, %.0f KB once used, a plain session %.0f KB; "
                                    + "%.2f ms to load one",
                            Figure.median(manyCpu),
                            Figure.median(fewCpu),
                            plainAll.micros,
                            plainOne.micros,
                            Figure.median(loadedRate),
                            idle,
                            used,
                            plainAll.kilobytes,
                            1e3 * seconds / (MODELS - 1)),
                    ">= 0.90 of one model's throughput",
                    Figure.verdict(share >= MIN_SHARE)));
        }
    }

    /** The library alone: microseconds a run, sessions in turn, in the best of some rounds; and resident memory a session. */
    private record Plain(double micros, double kilobytes) {}

    private static Plain plain(Path model, int count) throws IOException {
        OrtEnvironment environment = OrtEnvironment.getEnvironment();
        List<OrtSession> sessions = new ArrayList<>();
        double best = Double.MAX_VALUE;
        double kilobytes;
        try (OrtSession.SessionOptions options = new OrtSession.SessionOptions();
                OnnxTensor input = OnnxTensor.createTensor(environment, FloatBuffer.allocate(16), new long[] {1, 16})) {
            options.setIntraOpNumThreads(1);
            long self = ProcessHandle.current().pid();
            long before = Proc.residentBytes(self);
            for (int i = 0; i < count; i++) {
                sessions.add(environment.createSession(model.toString(), options));
            }
            Map<String, OnnxTensor> fed = Map.of("INPUT0", input);
            for (int round = 0; round < PLAIN_ROUNDS; round++) {
                long from = System.nanoTime();
                for (int i = 0; i < PLAIN_RUNS; i++) {
                    sessions.get(i % count).run(fed).close();
                }
                best = Math.min(best, (System.nanoTime() - from) / 1e3 / PLAIN_RUNS);
            }
            kilobytes = (Proc.residentBytes(self) - before) / 1e3 / count;
            for (OrtSession session : sessions) {
                session.close();
            }
        } catch (OrtException e) {
            throw new IOException("the plain loop failed: " + e.getMessage(), e);
        }
        return new Plain(best, kilobytes);
    }

    private static Load.Outcome answered(Load.Outcome outcome) throws IOException {
        if (outcome.failed() > 0 || outcome.requests() == 0) {
            throw new IOException(outcome.failed() + " of " + outcome.requests() + " requests failed");
        }
        return outcome;
    }

    /** Kilobytes of memory that one model more takes. */
    private static double perModel(ServerProcess one, ServerProcess all) {
        return (Proc.residentBytes(all.pid()) - Proc.residentBytes(one.pid())) / 1e3 / (MODELS - 1);
    }

    /** Copies under names from {@code m0} on, each with nothing but its file. */
    private static Path repository(Bench.Setting setting, Path model, int count) throws IOException {
        Path repository = setting.directory("models-" + count);
        for (int i = 0; i < count; i++) {
            Path version = Files.createDirectories(repository.resolve("m" + i).resolve("1"));
            Files.copy(model, version.resolve("model.onnx"));
        }
        return repository;
    }
}
