// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.LoadGenerator;
import io.nereid.bench.harness.ProcessStatistics;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerProcess;
import java.io.IOException;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * A server with a thousand tiny ONNX models and requests for each in turn, compared with a server with one of them; and
 * the memory of an idle model. Both servers get the same kind of load in alternating rounds. A thousand sessions do not
 * fit into the CPU caches; a plain loop over as many sessions shows how much of the difference that explains.
 * Stateless.
 */
public final class ManyModelsScenario implements Scenario {
    private static final int MODELS = 1000;
    private static final double MIN_SHARE = 0.9;
    private static final int PLAIN_ROUNDS = 5;
    private static final int PLAIN_RUNS = 50_000;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        String work = "1,000 tiny ONNX models, requests for each in turn, REST, 16 connections";
        Path model = setting.root().resolve("backends/onnx/src/test/resources/models/identity_fp32.onnx");
        RequestBodies bodies = new RequestBodies(setting.scratch());
        LoadGenerator few = bodies.models(1);
        LoadGenerator many = bodies.models(MODELS);
        if (!LoadGenerator.onPath(many.program())) {
            setting.log("SKIPPED: %s is not on the PATH", many.program());
            return List.of(BenchmarkResult.skipped(work, many.program() + " is not on the PATH"));
        }
        Plain plainOne = plain(model, 1);
        Plain plainAll = plain(model, MODELS);
        setting.log(
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
            setting.log(
                    "%d models: ready after %.2f s, with one after %.2f s; %.1f KB resident a model",
                    MODELS, all.secondsToReady(), one.secondsToReady(), idle);
            few.run(one, setting.warmup(), setting.scratch());
            many.run(all, setting.warmup(), setting.scratch());
            for (int i = 0; i < setting.rounds(); i++) {
                double before = ProcessStatistics.cpu(one.pid(), false);
                LoadGenerator.Outcome outcome = answered(few.run(one, setting.seconds(), setting.scratch()));
                fewRate[i] = outcome.requests() / outcome.seconds();
                fewCpu[i] = (ProcessStatistics.cpu(one.pid(), false) - before) * 1e6 / outcome.requests();
                before = ProcessStatistics.cpu(all.pid(), false);
                outcome = answered(many.run(all, setting.seconds(), setting.scratch()));
                manyRate[i] = outcome.requests() / outcome.seconds();
                manyCpu[i] = (ProcessStatistics.cpu(all.pid(), false) - before) * 1e6 / outcome.requests();
                outcome = answered(few.run(all, setting.seconds(), setting.scratch()));
                loadedRate[i] = outcome.requests() / outcome.seconds();
                setting.log(
                        "one model %.0f req/s at %.2f us CPU, all %.0f req/s at %.2f us CPU, one of all %.0f req/s",
                        fewRate[i], fewCpu[i], manyRate[i], manyCpu[i], loadedRate[i]);
            }
            double used = perModel(one, all);
            setting.log("after the load %.1f KB resident a model", used);
            double share = BenchmarkResult.median(manyRate) / BenchmarkResult.median(fewRate);
            return List.of(new BenchmarkResult(
                    work,
                    BenchmarkResult.spread(fewRate, "req/s, one model"),
                    BenchmarkResult.spread(manyRate, "req/s"),
                    String.format(Locale.ROOT, "%.2f", share),
                    String.format(
                            Locale.ROOT,
                            "CPU %.2f against %.2f us/req (plain loop %.2f against %.2f us/run); "
                                    + "one of the loaded alone %.0f req/s; "
                                    + "%.0f KB a loaded model, %.0f KB once used, a plain session %.0f KB; "
                                    + "%.2f ms to load one",
                            BenchmarkResult.median(manyCpu),
                            BenchmarkResult.median(fewCpu),
                            plainAll.micros,
                            plainOne.micros,
                            BenchmarkResult.median(loadedRate),
                            idle,
                            used,
                            plainAll.kilobytes,
                            1e3 * seconds / (MODELS - 1)),
                    ">= 0.90 of one model's throughput",
                    BenchmarkResult.verdict(share >= MIN_SHARE)));
        }
    }

    /**
     * The library alone: microseconds per run with sessions in turn, in the best round; and resident memory per
     * session.
     */
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
            long before = ProcessStatistics.residentBytes(self);
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
            kilobytes = (ProcessStatistics.residentBytes(self) - before) / 1e3 / count;
            for (OrtSession session : sessions) {
                session.close();
            }
        } catch (OrtException e) {
            throw new IOException("the plain loop failed: " + e.getMessage(), e);
        }
        return new Plain(best, kilobytes);
    }

    private static LoadGenerator.Outcome answered(LoadGenerator.Outcome outcome) throws IOException {
        if (outcome.failed() > 0 || outcome.requests() == 0) {
            throw new IOException(outcome.failed() + " of " + outcome.requests() + " requests failed");
        }
        return outcome;
    }

    /** Returns the memory of one additional model in kilobytes. */
    private static double perModel(ServerProcess one, ServerProcess all) {
        return (ProcessStatistics.residentBytes(all.pid()) - ProcessStatistics.residentBytes(one.pid()))
                / 1e3
                / (MODELS - 1);
    }

    /** Writes copies of a model as {@code m0}, {@code m1}, …, each without a configuration. */
    private static Path repository(BenchmarkSettings setting, Path model, int count) throws IOException {
        Path repository = setting.directory("models-" + count);
        for (int i = 0; i < count; i++) {
            Path version = Files.createDirectories(repository.resolve("m" + i).resolve("1"));
            Files.copy(model, version.resolve("model.onnx"));
        }
        return repository;
    }
}
