// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.LoadGenerator;
import io.nereid.bench.harness.OpenLoad;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * A latency objective beside a written configuration: {@code minilm} with {@code slo} and, on a server of its own, as the example configures
 * it, with requests at random times from a third of what the machine reaches to one and a half times that. What counts is
 * the rate of responses within the objective, by the client's clock. Stateless.
 */
public final class ObjectiveScenario implements Scenario {
    private static final double[] SHARES = {0.3, 0.6, 0.9, 1.2, 1.5};
    private static final int OBJECTIVE_MILLIS = 100;
    private static final int CLIENTS = 64;
    /** The least share of the capacity that is answered within the objective under overload. */
    private static final double LEAST_GOODPUT = 0.85;
    /** The most that the 99 % time of answered requests may be, in objectives. */
    private static final double MOST_LATE = 1.1;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        Path model = setting.examples().resolve("minilm");
        if (!Files.exists(model.resolve("1").resolve("model.onnx"))) {
            String missing = "the build has not fetched the model of " + model;
            setting.log("SKIPPED: %s", missing);
            return List.of(BenchmarkResult.skipped("a latency objective", missing));
        }
        LoadGenerator bodies = new RequestBodies(setting.scratch()).minilm(1);
        byte[] body = Files.readAllBytes(bodies.body());
        List<BenchmarkResult> results = new ArrayList<>();
        try (ServerProcess written = server(setting, model, "objective-without", "");
                ServerProcess objective = server(
                        setting,
                        model,
                        "objective-with",
                        "parameters { key: \"slo\" value { string_value: \"p99=" + OBJECTIVE_MILLIS + "ms\" } }\n")) {
            OpenLoad without = load(written, bodies, body);
            OpenLoad with = load(objective, bodies, body);
            without.clients(CLIENTS, setting.warmup());
            with.clients(CLIENTS, setting.warmup());
            double capacity = without.clients(CLIENTS, setting.seconds()).servedPerSecond();
            setting.log("capacity %.0f/s", capacity);
            for (double share : SHARES) {
                results.add(at(setting, without, with, share, capacity));
            }
        }
        return results;
    }

    private static OpenLoad load(ServerProcess server, LoadGenerator bodies, byte[] body) {
        return new OpenLoad(server, bodies.path(), body, bodies.headers()).objective(OBJECTIVE_MILLIS / 1e3);
    }

    private static ServerProcess server(BenchmarkSettings setting, Path model, String name, String parameters)
            throws IOException {
        Path repository = setting.directory(name);
        Path copy = repository.resolve("minilm");
        StartupScenario.copy(model, copy);
        Path config = copy.resolve("config.pbtxt");
        Files.writeString(config, Files.readString(config) + parameters);
        return ServerProcess.nereid(setting.distribution(), repository, setting.scratch());
    }

    private static BenchmarkResult at(
            BenchmarkSettings setting, OpenLoad without, OpenLoad with, double share, double capacity)
            throws InterruptedException {
        int rounds = setting.rounds();
        double[] plain = new double[rounds];
        double[] plainP99 = new double[rounds];
        double[] good = new double[rounds];
        double[] p99 = new double[rounds];
        long refused = 0;
        long silent = 0;
        long failed = 0;
        double seconds = Math.max(4, setting.seconds());
        for (int i = 0; i < rounds; i++) {
            OpenLoad.Outcome outcome = without.random(share * capacity, seconds, 31 + i);
            plain[i] = outcome.withinPerSecond();
            plainP99[i] = outcome.p99() * 1e3;
            failed += outcome.failed();
            outcome = with.random(share * capacity, seconds, 31 + i);
            good[i] = outcome.withinPerSecond();
            p99[i] = outcome.p99() * 1e3;
            refused += outcome.refused();
            silent += outcome.refusedWithoutTime();
            failed += outcome.failed();
            setting.log(
                    "%.0f %%: within %d ms %.0f/s, p99 %.1f ms; with the objective %.0f/s, p99 %.1f ms, %d refused",
                    100 * share, OBJECTIVE_MILLIS, plain[i], plainP99[i], good[i], p99[i], outcome.refused());
        }
        double goodput = BenchmarkResult.median(good) / (Math.min(1, share) * capacity);
        double late = BenchmarkResult.median(p99) / OBJECTIVE_MILLIS;
        return new BenchmarkResult(
                String.format(
                        Locale.ROOT,
                        "minilm, objective p99=%dms, Poisson at %.0f %% of %.0f/s",
                        OBJECTIVE_MILLIS,
                        100 * share,
                        capacity),
                BenchmarkResult.spread(plain, "responses/s within it, as written"),
                BenchmarkResult.spread(good, "responses/s"),
                String.format(Locale.ROOT, "%.2f", BenchmarkResult.median(good) / BenchmarkResult.median(plain)),
                String.format(
                        Locale.ROOT,
                        "p99 %.1f ms, as written %.1f ms; %d refused (%d without a time to retry), %d failed",
                        BenchmarkResult.median(p99),
                        BenchmarkResult.median(plainP99),
                        refused,
                        silent,
                        failed),
                String.format(Locale.ROOT, "p99 <= %.1f objectives, goodput >= %.2f", MOST_LATE, LEAST_GOODPUT),
                BenchmarkResult.verdict(late <= MOST_LATE && goodput >= LEAST_GOODPUT && silent + failed == 0));
    }
}
