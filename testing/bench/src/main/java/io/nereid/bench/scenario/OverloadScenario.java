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
    /** Half of the time of the long runs, and far above that of the short ones. */
    private static final double MAX_BESIDE_LONG_RUNS = 0.5;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        Path models = setting.directory("overload");
        model(models, "ten", 10, 1);
        model(models, "hundred", 100, 1);
        model(models, "long", 1_000, Runtime.getRuntime().availableProcessors());
        model(models, "quick", 1, 1);
        byte[] body = Files.readAllBytes(
                new RequestBodies(setting.scratch()).restSmall().body());
        List<BenchmarkResult> results = new ArrayList<>();
        try (ServerProcess server = ServerProcess.nereid(setting.distribution(), models, setting.scratch())) {
            results.add(excess(setting, load(server, "ten", body)));
            results.add(clients(setting, load(server, "hundred", body)));
            results.add(besideLongRuns(load(server, "long", body), load(server, "quick", body)));
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

    private static BenchmarkResult besideLongRuns(OpenLoad slow, OpenLoad quick) throws InterruptedException {
        CompletableFuture<OpenLoad.Outcome> background = new CompletableFuture<>();
        Thread thread = io.nereid.base.Threads.named("long-runs").newThread(() -> {
            try {
                background.complete(slow.clients(4 * Runtime.getRuntime().availableProcessors(), 8));
            } catch (InterruptedException e) {
                background.completeExceptionally(e);
            }
        });
        thread.start();
        OpenLoad.Outcome outcome = quick.random(20, 8, 43);
        thread.join();
        boolean reached = outcome.p99() <= MAX_BESIDE_LONG_RUNS && outcome.refused() + outcome.failed() == 0;
        return new BenchmarkResult(
                "a model of 1 ms beside runs of 1 s on every processor",
                "",
                String.format(Locale.ROOT, "p99 %.0f ms", outcome.p99() * 1e3),
                "",
                String.format(
                        Locale.ROOT,
                        "p50 %.1f ms; %d long runs served",
                        outcome.p50() * 1e3,
                        background.join().served()),
                String.format(Locale.ROOT, "p99 <= %.0f ms", MAX_BESIDE_LONG_RUNS * 1e3),
                BenchmarkResult.verdict(reached));
    }
}
