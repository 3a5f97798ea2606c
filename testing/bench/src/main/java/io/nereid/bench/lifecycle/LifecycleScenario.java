// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.lifecycle;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.ControlPlaneServer;
import io.nereid.bench.harness.LargeModel;
import io.nereid.bench.harness.LoadGenerator;
import io.nereid.bench.harness.ProcessStatistics;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerProcess;
import io.nereid.bench.scenario.Scenario;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * The cost of loads and unloads for the models that serve: two hundred version transitions of a model under saturation;
 * loads and unloads of a 400 MB model beside it; and an idle list of ten thousand models, a thousand of which exist.
 * Stateless.
 */
public final class LifecycleScenario implements Scenario {
    private static final int SWAPS = 200;
    private static final int LOADS = 5;
    private static final int LISTED = 10_000;
    private static final int STORED = 1_000;
    private static final long SETTLE_MILLIS = 5_000;
    private static final double MAX_SWAP = 1.5;
    private static final double MAX_LOAD = 1.2;
    private static final double MAX_POLL = 0.01;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        Path tiny = setting.root().resolve("backends/onnx/src/test/resources/models/identity_fp32.onnx");
        List<BenchmarkResult> results = new ArrayList<>();
        LoadGenerator load = new RequestBodies(setting.scratch()).models(1);
        if (LoadGenerator.onPath(load.program())) {
            results.addAll(swaps(setting, tiny, load));
        } else {
            results.add(
                    BenchmarkResult.skipped("version transitions under load", load.program() + " is not on the PATH"));
        }
        results.add(list(setting, tiny));
        return results;
    }

    private static List<BenchmarkResult> swaps(BenchmarkSettings setting, Path tiny, LoadGenerator load)
            throws IOException, InterruptedException {
        Path base = setting.directory("swapped");
        for (int version = 1; version <= 2; version++) {
            Files.copy(
                    tiny,
                    Files.createDirectories(base.resolve(Integer.toString(version)))
                            .resolve("model.onnx"));
        }
        Path large = LargeModel.write(setting.directory("large"));
        Path file = setting.scratch().resolve("swapped.config");
        String served = entry("m0", base, "model_version_policy { specific { versions: %d } }");
        Files.writeString(file, list(String.format(Locale.ROOT, served, 1)));
        ExecutorService driver = Executors.newSingleThreadExecutor();
        try (ServerProcess server = ServerProcess.listed(setting.distribution(), file, setting.scratch())) {
            Admin admin = new Admin(server);
            // Warms up the code of version transitions along with that of requests.
            Future<LoadGenerator.Outcome> warm =
                    driver.submit(() -> load.run(server, setting.warmup(), setting.scratch()));
            for (int i = 0; i < SWAPS && !warm.isDone(); i++) {
                admin.configure(list(String.format(Locale.ROOT, served, i % 2 == 0 ? 2 : 1)));
            }
            get(warm);
            admin.configure(list(String.format(Locale.ROOT, served, 1)));
            double foreign = foreign(server);
            long from = System.nanoTime();
            double[] steady = new double[setting.rounds()];
            double[] swapped = new double[setting.rounds()];
            double[] loading = new double[setting.rounds()];
            double[] counting = new double[setting.rounds()];
            long failed = 0;
            long requests = 0;
            int swaps = 0;
            for (int round = 0; round < setting.rounds(); round++) {
                steady[round] =
                        load.run(server, setting.seconds(), setting.scratch()).p99();
                Future<LoadGenerator.Outcome> under =
                        driver.submit(() -> load.run(server, setting.seconds(), setting.scratch()));
                int transitions = (SWAPS + setting.rounds() - 1) / setting.rounds();
                for (int i = 0; i < transitions && !under.isDone(); i++, swaps++) {
                    admin.configure(list(String.format(Locale.ROOT, served, 2 - swaps % 2)));
                }
                LoadGenerator.Outcome outcome = get(under);
                swapped[round] = outcome.p99();
                failed += outcome.failed();
                requests += outcome.requests();
                String one = String.format(Locale.ROOT, served, 1 + swaps % 2);
                Future<LoadGenerator.Outcome> beside =
                        driver.submit(() -> load.run(server, setting.seconds(), setting.scratch()));
                for (int i = 0; i < LOADS && !beside.isDone(); i++) {
                    admin.configure(list(one, entry("large", large, "")));
                    admin.configure(list(one));
                }
                outcome = get(beside);
                loading[round] = outcome.p99();
                failed += outcome.failed();
                requests += outcome.requests();
                counting[round] = besideNothing(setting, server, load);
                setting.log(
                        "p99 steady %.2f ms, during version transitions %.2f ms, while 400 MB load %.2f ms, beside"
                                + " a loop"
                                + " %.2f ms",
                        steady[round], swapped[round], loading[round], counting[round]);
            }
            foreign = (foreign(server) - foreign)
                    / ((System.nanoTime() - from) / 1e9 * Runtime.getRuntime().availableProcessors());
            String others = String.format(Locale.ROOT, "others took %.0f %% of the machine", 100 * foreign);
            double swapRatio = BenchmarkResult.median(swapped) / BenchmarkResult.median(steady);
            double loadRatio = BenchmarkResult.median(loading) / BenchmarkResult.median(steady);
            return List.of(
                    new BenchmarkResult(
                            swaps + " transitions of a served version under saturation, REST, 16 connections",
                            BenchmarkResult.spread(steady, "ms p99, steady"),
                            BenchmarkResult.spread(swapped, "ms p99"),
                            String.format(Locale.ROOT, "%.2f", swapRatio),
                            failed + " of " + requests + " requests failed; " + others,
                            "none failed; p99 <= 1.5 x steady",
                            BenchmarkResult.verdict(failed == 0 && swapRatio <= MAX_SWAP)),
                    new BenchmarkResult(
                            "a model of 400 MB loads and unloads beside it",
                            BenchmarkResult.spread(steady, "ms p99, steady"),
                            BenchmarkResult.spread(loading, "ms p99"),
                            String.format(Locale.ROOT, "%.2f", loadRatio),
                            String.format(
                                    Locale.ROOT,
                                    "%s; %.2f beside a loop that only counts, under SCHED_IDLE as loads are",
                                    others,
                                    BenchmarkResult.median(counting) / BenchmarkResult.median(steady)),
                            "p99 <= 1.2 x steady",
                            BenchmarkResult.verdict(loadRatio <= MAX_LOAD)));
        } finally {
            driver.shutdownNow();
        }
    }

    /**
     * Returns the p99 beside a busy loop with idle priority (SCHED_IDLE): the cost of any busy neighbour on this
     * machine. NaN when the loop cannot be started.
     */
    private static double besideNothing(BenchmarkSettings setting, ServerProcess server, LoadGenerator load)
            throws IOException, InterruptedException {
        if (!LoadGenerator.onPath("chrt")) {
            return Double.NaN;
        }
        Process loop = new ProcessBuilder("chrt", "-i", "0", "sh", "-c", "while :; do :; done").start();
        try {
            return load.run(server, setting.seconds(), setting.scratch()).p99();
        } finally {
            loop.destroyForcibly();
        }
    }

    /** Returns the CPU time of all processes other than the server and the load generator. */
    private static double foreign(ServerProcess server) {
        return ProcessStatistics.busy()
                - ProcessStatistics.cpu(server.pid(), false)
                - ProcessStatistics.cpu(ProcessHandle.current().pid(), true);
    }

    private static LoadGenerator.Outcome get(Future<LoadGenerator.Outcome> run)
            throws IOException, InterruptedException {
        try {
            return run.get();
        } catch (ExecutionException e) {
            throw new IOException("the load failed: " + e.getCause(), e);
        }
    }

    private static BenchmarkResult list(BenchmarkSettings setting, Path tiny) throws IOException, InterruptedException {
        Path bases = setting.directory("listed");
        String[] entries = new String[LISTED];
        for (int i = 0; i < LISTED; i++) {
            Path base = Files.createDirectories(bases.resolve("m" + i));
            if (i < STORED) {
                Files.copy(tiny, Files.createDirectories(base.resolve("1")).resolve("model.onnx"));
            }
            entries[i] = entry("m" + i, base, "");
        }
        Path file = setting.scratch().resolve("listed.config");
        Files.writeString(file, list(entries));
        try (ServerProcess server =
                ServerProcess.listed(setting.distribution(), file, setting.scratch(), "--strict-readiness=false")) {
            // Late work of the start, such as compilation, does not count as idle load.
            ControlPlaneServer.pause(SETTLE_MILLIS);
            double before = ProcessStatistics.cpu(server.pid(), false);
            double seconds = Math.max(10, setting.seconds() * 3);
            ControlPlaneServer.pause((long) (1e3 * seconds));
            double share = (ProcessStatistics.cpu(server.pid(), false) - before) / seconds;
            return new BenchmarkResult(
                    "10,000 listed models, 1,000 of them stored, idle",
                    "",
                    String.format(Locale.ROOT, "%.2f %% of a core", share * 100),
                    "",
                    String.format(
                            Locale.ROOT,
                            "all loaded after %.1f s; %.0f MB resident",
                            server.secondsToReady(),
                            ProcessStatistics.residentBytes(server.pid()) / 1e6),
                    "< 1 % of a core",
                    BenchmarkResult.verdict(share < MAX_POLL));
        }
    }

    private static String entry(String name, Path base, String more) {
        return "  config { name: \"" + name + "\" base_path: \"" + base + "\" model_platform: \"tensorflow\" " + more
                + " }\n";
    }

    private static String list(String... entries) {
        return "model_config_list {\n" + String.join("", entries) + "}\n";
    }

    /** A client of the server's endpoint for model lists. */
    private record Admin(ServerProcess server, HttpClient client) {
        Admin(ServerProcess server) {
            this(server, HttpClient.newHttpClient());
        }

        void configure(String list) throws IOException, InterruptedException {
            HttpResponse<String> reply = client.send(
                    HttpRequest.newBuilder(URI.create(server.url("/admin/model-config")))
                            .POST(HttpRequest.BodyPublishers.ofString(list))
                            .build(),
                    HttpResponse.BodyHandlers.ofString());
            if (reply.statusCode() != 200) {
                throw new IOException("the list was rejected: " + reply.body());
            }
        }
    }
}
