// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.OpenLoad;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;

/**
 * More load than a model can serve, for as long as the soak: the excess is refused at once, the rest is served in time;
 * a fixed number of clients is not refused, however many; and long runs of one model do not keep another one from
 * running. Stateless.
 */
public final class OverloadScenario implements Scenario {
    private static final int RATIO = 5;
    private static final double MIN_GOODPUT = 0.95;
    private static final double MAX_SECONDS = 1;
    private static final double MAX_REFUSAL_SECONDS = 0.05;
    private static final int CLIENTS = 1_000;
    /** How much longer the 99 % time of a model may be beside long runs of another. */
    private static final double MAX_BESIDE_LONG_RUNS = 1.2;

    private static final int QUICK_RATE = 200;
    private static final int LONG_MILLIS = 5_000;
    private static final double LONG_SECONDS = 10;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        Path models = setting.directory("overload");
        model(models, "ten", 10, 1);
        model(models, "hundred", 100, 1);
        model(models, "long", LONG_MILLIS, Runtime.getRuntime().availableProcessors());
        model(models, "quick", 1, 1);
        byte[] body = Files.readAllBytes(
                new RequestBodies(setting.scratch()).restSmall().body());
        List<BenchmarkResult> results = new ArrayList<>();
        try (ServerProcess server = ServerProcess.nereid(setting.distribution(), models, setting.scratch())) {
            results.add(excess(setting, load(server, "ten", body)));
            results.add(clients(setting, load(server, "hundred", body)));
            results.add(besideLongRuns(setting, load(server, "long", body), load(server, "quick", body)));
        }
        return results;
    }

    private static OpenLoad load(ServerProcess server, String model, byte[] body) {
        return new OpenLoad(server, "/v2/models/" + model + "/infer", body);
    }

    /** The length of a measurement: a minute, or less where the soak is shorter. */
    private static double seconds(BenchmarkSettings setting) {
        return Math.min(60, setting.soakSeconds());
    }

    /** An identity model whose runs wait. */
    private static void model(Path directory, String name, int delayMillis, int instances) throws IOException {
        Path model = directory.resolve(name);
        Files.createDirectories(model.resolve("1"));
        Files.writeString(model.resolve("config.pbtxt"), String.format(Locale.ROOT, """
            name: "%s"
            backend: "identity"
            parameters { key: "execute_delay_ms" value { string_value: "%d" } }
            instance_group [ { count: %d kind: KIND_CPU } ]
            input [ { name: "x" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]
            output [ { name: "y" data_type: TYPE_FP32 dims: [ -1, -1 ] } ]
            """, name, delayMillis, instances));
    }

    private static BenchmarkResult excess(BenchmarkSettings setting, OpenLoad load) throws InterruptedException {
        // The capacity: eight clients keep the instance busy.
        load.clients(8, 2);
        double capacity = load.clients(8, Math.min(5, seconds(setting))).servedPerSecond();
        OpenLoad.Outcome outcome = load.random(RATIO * capacity, seconds(setting), 42);
        double goodput = outcome.servedPerSecond() / capacity;
        setting.log(
                "capacity %.1f/s; served %d, refused %d, failed %d; refused p50 %.4f s, p95 %.4f s; %d without retry-after",
                capacity,
                outcome.served(),
                outcome.refused(),
                outcome.failed(),
                outcome.refusedP50(),
                outcome.refusedP95(),
                outcome.refusedWithoutTime());
        boolean reached = goodput >= MIN_GOODPUT
                && outcome.p99() <= MAX_SECONDS
                && outcome.refusedP50() <= MAX_REFUSAL_SECONDS
                && outcome.refusedWithoutTime() == 0
                && outcome.failed() == 0;
        return new BenchmarkResult(
                String.format(Locale.ROOT, "overload, Poisson at %d x capacity, %.0f s", RATIO, seconds(setting)),
                "",
                String.format(Locale.ROOT, "goodput %.1f %% of capacity", goodput * 100),
                "",
                String.format(
                        Locale.ROOT,
                        "p50 %.2f s, p99 %.2f s; refused in %.1f ms (p50)",
                        outcome.p50(),
                        outcome.p99(),
                        outcome.refusedP50() * 1e3),
                String.format(Locale.ROOT, ">= %.0f %%, p99 <= %.0f s", MIN_GOODPUT * 100, MAX_SECONDS),
                BenchmarkResult.verdict(reached));
    }

    private static BenchmarkResult clients(BenchmarkSettings setting, OpenLoad load) throws InterruptedException {
        OpenLoad.Outcome outcome = load.clients(CLIENTS, seconds(setting) / 2);
        long refused = outcome.refused() + outcome.failed();
        return new BenchmarkResult(
                String.format(Locale.ROOT, "%,d clients of a model with runs of 100 ms", CLIENTS),
                "",
                String.format(Locale.ROOT, "%d of %d refused", refused, outcome.served() + refused),
                "",
                String.format(Locale.ROOT, "p50 %.1f s", outcome.p50()),
                "none",
                BenchmarkResult.verdict(refused == 0));
    }

    private static BenchmarkResult besideLongRuns(BenchmarkSettings setting, OpenLoad slow, OpenLoad quick)
            throws InterruptedException {
        quick.random(QUICK_RATE, LONG_SECONDS, 42);
        double[] alone = new double[setting.rounds()];
        double[] beside = new double[setting.rounds()];
        long lost = 0;
        long longRuns = 0;
        for (int i = 0; i < setting.rounds(); i++) {
            OpenLoad.Outcome before = quick.random(QUICK_RATE, LONG_SECONDS, 43 + i);
            CompletableFuture<OpenLoad.Outcome> background = new CompletableFuture<>();
            Thread thread = io.nereid.base.Threads.named("long-runs").newThread(() -> {
                try {
                    background.complete(slow.clients(2 * Runtime.getRuntime().availableProcessors(), LONG_SECONDS));
                } catch (InterruptedException e) {
                    background.completeExceptionally(e);
                }
            });
            thread.start();
            OpenLoad.Outcome during = quick.random(QUICK_RATE, LONG_SECONDS, 43 + i);
            thread.join();
            alone[i] = before.p99() * 1e3;
            beside[i] = during.p99() * 1e3;
            lost += before.refused() + before.failed() + during.refused() + during.failed();
            longRuns += background.join().served();
        }
        double ratio = BenchmarkResult.median(beside) / BenchmarkResult.median(alone);
        boolean reached = ratio <= MAX_BESIDE_LONG_RUNS && lost == 0;
        return new BenchmarkResult(
                "a model of 1 ms, " + QUICK_RATE + "/s, beside runs of 5 s on every processor, p99",
                BenchmarkResult.spread(alone, "ms"),
                BenchmarkResult.spread(beside, "ms"),
                String.format(Locale.ROOT, "%.2f", ratio),
                String.format(Locale.ROOT, "%d requests lost; %d long runs served", lost, longRuns),
                String.format(Locale.ROOT, "<= %.1f x alone, none lost", MAX_BESIDE_LONG_RUNS),
                BenchmarkResult.verdict(reached));
    }
}
