// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.lifecycle;

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
import io.nereid.bench.scenario.Scenario;
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
 * the memory of an idle model. All servers get the same kind of load in alternating rounds. A thousand sessions do not
 * fit into the CPU caches. How much of the difference that explains, a plain loop over as many sessions shows, and the server's transport
 * with a plain session for each model, in which connections and runs share the caches. Stateless.
 */
public final class ManyModelsScenario implements Scenario {
    private static final int MODELS = 1000;
    /** How much more than the plain sessions lose with as many models a request may lose. */
    private static final double MOST_LOSS = 1.25;

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
        double[] bareFewCpu = new double[setting.rounds()];
        double[] bareManyCpu = new double[setting.rounds()];
        try (ServerProcess one =
                        ServerProcess.nereid(setting.distribution(), repository(setting, model, 1), setting.scratch());
                ServerProcess all = ServerProcess.nereid(
                        setting.distribution(), repository(setting, model, MODELS), setting.scratch());
                ServerProcess bareOne = ServerProcess.plainSessions(one, model, 1, setting.scratch());
                ServerProcess bareAll = ServerProcess.plainSessions(one, model, MODELS, setting.scratch())) {
            double idle = perModel(one, all);
            double seconds = all.secondsToReady() - one.secondsToReady();
            setting.log(
                    "%d models: ready after %.2f s, with one after %.2f s; %.1f KB resident a model",
                    MODELS, all.secondsToReady(), one.secondsToReady(), idle);
            few.run(one, setting.warmup(), setting.scratch());
            many.run(all, setting.warmup(), setting.scratch());
            few.run(bareOne, setting.warmup(), setting.scratch());
            many.run(bareAll, setting.warmup(), setting.scratch());
            for (int i = 0; i < setting.rounds(); i++) {
                Round round = round(setting, few, one);
                fewRate[i] = round.rate;
                fewCpu[i] = round.micros;
                round = round(setting, many, all);
                manyRate[i] = round.rate;
                manyCpu[i] = round.micros;
                loadedRate[i] = round(setting, few, all).rate;
                bareFewCpu[i] = round(setting, few, bareOne).micros;
                bareManyCpu[i] = round(setting, many, bareAll).micros;
                setting.log(
                        "one model %.0f req/s at %.2f us CPU, all %.0f req/s at %.2f us CPU, one of all %.0f req/s; plain sessions"
                                + " %.2f and %.2f us CPU",
                        fewRate[i], fewCpu[i], manyRate[i], manyCpu[i], loadedRate[i], bareFewCpu[i], bareManyCpu[i]);
            }
            double used = perModel(one, all);
            setting.log("after the load %.1f KB resident a model", used);
            double loss = BenchmarkResult.median(manyCpu) - BenchmarkResult.median(fewCpu);
            double bareLoss = BenchmarkResult.median(bareManyCpu) - BenchmarkResult.median(bareFewCpu);
            return List.of(new BenchmarkResult(
                    work,
                    String.format(
                            Locale.ROOT,
                            "plain sessions behind the same transport: %.2f us CPU/req, with one %.2f",
                            BenchmarkResult.median(bareManyCpu),
                            BenchmarkResult.median(bareFewCpu)),
                    String.format(
                            Locale.ROOT,
                            "%.2f us CPU/req, with one %.2f",
                            BenchmarkResult.median(manyCpu),
                            BenchmarkResult.median(fewCpu)),
                    String.format(Locale.ROOT, "%.2f", loss / bareLoss),
                    String.format(
                            Locale.ROOT,
                            "loss %.2f against %.2f us (plain loop %.2f); %s, one model %s; one of the loaded alone %.0f req/s; "
                                    + "%.0f KB a loaded model, %.0f KB once used, a plain session %.0f KB; "
                                    + "%.2f ms to load one",
                            loss,
                            bareLoss,
                            plainAll.micros - plainOne.micros,
                            BenchmarkResult.spread(manyRate, "req/s"),
                            BenchmarkResult.spread(fewRate, "req/s"),
                            BenchmarkResult.median(loadedRate),
                            idle,
                            used,
                            plainAll.kilobytes,
                            1e3 * seconds / (MODELS - 1)),
                    String.format(Locale.ROOT, "<= %.2f x the loss of plain sessions", MOST_LOSS),
                    BenchmarkResult.verdict(loss <= MOST_LOSS * bareLoss)));
        }
    }

    /** One round of a server: requests per second, and CPU time of the server's process for each. */
    private record Round(double rate, double micros) {}

    private static Round round(BenchmarkSettings setting, LoadGenerator load, ServerProcess server)
            throws IOException, InterruptedException {
        double before = ProcessStatistics.cpu(server.pid(), false);
        LoadGenerator.Outcome outcome = answered(load.run(server, setting.seconds(), setting.scratch()));
        return new Round(
                outcome.requests() / outcome.seconds(),
                (ProcessStatistics.cpu(server.pid(), false) - before) * 1e6 / outcome.requests());
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
