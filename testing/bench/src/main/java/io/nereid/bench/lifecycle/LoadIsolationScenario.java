// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.lifecycle;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.LargeModel;
import io.nereid.bench.harness.OpenLoad;
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
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;

/**
 * What loads cost the requests of another model while the machine has something left: requests at random times, at a half
 * and at nine tenths of the rate that the machine reaches, steady, during two hundred transitions of the version that serves,
 * and while a model of 400 MB loads, warms up and unloads. The load generator shares the machine, so that the rate
 * includes its part. Latencies count from the time at which a request was due. Stateless.
 */
public final class LoadIsolationScenario implements Scenario {
    private static final int SWAPS = 200;
    private static final int CLIENTS = 16;
    private static final double[] SHARES = {0.5, 0.9};
    private static final double[] MOST = {1.2, 1.5};
    private static final String SERVED = "{\"parameters\":{\"config\":\"{\\\"name\\\":\\\"served\\\","
            + "\\\"version_policy\\\":{\\\"specific\\\":{\\\"versions\\\":[%d]}}}\"}}";

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        Path tiny = setting.root().resolve("backends/onnx/src/test/resources/models/identity_fp32.onnx");
        Path repository = setting.directory("isolation");
        for (int version = 1; version <= 2; version++) {
            Path at = Files.createDirectories(repository.resolve("served").resolve(Integer.toString(version)));
            Files.copy(tiny, at.resolve("model.onnx"));
        }
        LargeModel.write(Files.createDirectories(repository.resolve("large")));
        Files.writeString(
                repository.resolve("large").resolve("config.pbtxt"), String.format(Locale.ROOT, """
            name: "large"
            backend: "onnxruntime"
            max_batch_size: 8
            input [ { name: "x" data_type: TYPE_FP32 dims: [ %1$d ] } ]
            output [ { name: "y" data_type: TYPE_FP32 dims: [ %1$d ] } ]
            model_warmup [ {
              name: "once" batch_size: 1
              inputs { key: "x" value { data_type: TYPE_FP32 dims: [ %1$d ] zero_data: true } }
            } ]
            """, LargeModel.SIDE));
        byte[] body = Files.readAllBytes(
                new RequestBodies(setting.scratch()).models(1).body());
        List<BenchmarkResult> results = new ArrayList<>();
        ScheduledExecutorService driver = Executors.newSingleThreadScheduledExecutor();
        try (ServerProcess server = ServerProcess.nereid(
                setting.distribution(),
                repository,
                setting.scratch(),
                "--model-control-mode",
                "explicit",
                "--load-model",
                "served")) {
            Repository models = new Repository(server, HttpClient.newHttpClient());
            OpenLoad load = new OpenLoad(server, "/v2/models/served/infer", body);
            models.post("served/load", String.format(Locale.ROOT, SERVED, 1));
            load.clients(CLIENTS, setting.warmup());
            // The code of loads, transitions and unloads is compiled before anything counts.
            get(driver.submit(() -> transitions(models, SWAPS / 4)));
            get(driver.submit(() -> loadAndUnload(models)));
            double capacity = load.clients(CLIENTS, setting.seconds()).servedPerSecond();
            for (int i = 0; i < SHARES.length; i++) {
                results.addAll(at(setting, driver, models, load, SHARES[i], MOST[i], capacity));
            }
        } finally {
            driver.shutdownNow();
        }
        return results;
    }

    private static List<BenchmarkResult> at(
            BenchmarkSettings setting,
            ScheduledExecutorService driver,
            Repository models,
            OpenLoad load,
            double share,
            double most,
            double capacity)
            throws IOException, InterruptedException {
        int rounds = setting.rounds();
        double[] steady = new double[rounds];
        double[] swapped = new double[rounds];
        double[] loading = new double[rounds];
        double rate = share * capacity;
        double seconds = setting.seconds();
        long lost = 0;
        int loads = 0;
        int swaps = (SWAPS + rounds - 1) / rounds;
        for (int round = 0; round < rounds; round++) {
            OpenLoad.Outcome outcome = load.random(rate, seconds, 17 + round);
            steady[round] = outcome.p99() * 1e3;
            lost += outcome.refused() + outcome.failed();
            Future<Integer> transitions = driver.submit(() -> transitions(models, swaps));
            outcome = load.random(rate, seconds, 117 + round);
            get(transitions);
            swapped[round] = outcome.p99() * 1e3;
            lost += outcome.refused() + outcome.failed();
            CompletableFuture<Boolean> over = new CompletableFuture<>();
            Future<Integer> repeated = driver.submit(() -> {
                int count = 0;
                while (!over.isDone()) {
                    loadAndUnload(models);
                    count++;
                }
                return count;
            });
            outcome = load.random(rate, seconds, 217 + round);
            over.complete(true);
            loads += get(repeated);
            loading[round] = outcome.p99() * 1e3;
            lost += outcome.refused() + outcome.failed();
            setting.log(
                    "%.0f %% of %.0f/s: p99 steady %.2f ms, during %d transitions %.2f ms, while 400 MB load and unload %.2f ms",
                    100 * share, capacity, steady[round], swaps, swapped[round], loading[round]);
        }
        String base = BenchmarkResult.spread(steady, "ms p99, steady");
        return List.of(
                row(
                        String.format(
                                Locale.ROOT,
                                "%d transitions of the served version at %.0f %% of %.0f/s",
                                swaps * rounds,
                                100 * share,
                                capacity),
                        base,
                        steady,
                        swapped,
                        most,
                        lost + " requests lost"),
                row(
                        String.format(
                                Locale.ROOT,
                                "a model of 400 MB loads, warms up and unloads at %.0f %% of %.0f/s",
                                100 * share,
                                capacity),
                        base,
                        steady,
                        loading,
                        most,
                        loads + " loads; " + lost + " requests lost"));
    }

    private static BenchmarkResult row(
            String work, String base, double[] steady, double[] disturbed, double most, String more) {
        double ratio = BenchmarkResult.median(disturbed) / BenchmarkResult.median(steady);
        double[] ratios = new double[steady.length];
        Arrays.setAll(ratios, i -> disturbed[i] / steady[i]);
        BenchmarkResult.Interval interval = BenchmarkResult.Interval.ofRatios(ratios);
        return new BenchmarkResult(
                work,
                base,
                BenchmarkResult.spread(disturbed, "ms p99"),
                String.format(Locale.ROOT, "%.2f", ratio),
                String.format(Locale.ROOT, "95 %% interval %.2f to %.2f; %s", interval.low(), interval.high(), more),
                String.format(Locale.ROOT, "<= %.1f x steady", most),
                BenchmarkResult.verdict(ratio <= most));
    }

    private static int transitions(Repository models, int count) throws IOException, InterruptedException {
        for (int i = 0; i < count; i++) {
            models.post("served/load", String.format(Locale.ROOT, SERVED, 2 - i % 2));
        }
        return count;
    }

    private static int loadAndUnload(Repository models) throws IOException, InterruptedException {
        models.post("large/load", "{}");
        models.post("large/unload", "{}");
        return 1;
    }

    private static <T> T get(Future<T> task) throws IOException, InterruptedException {
        try {
            return task.get();
        } catch (ExecutionException e) {
            throw new IOException("a change failed: " + e.getCause(), e);
        }
    }

    /** A client of the server's model repository. */
    private record Repository(ServerProcess server, HttpClient client) {
        void post(String action, String body) throws IOException, InterruptedException {
            HttpResponse<String> reply = client.send(
                    HttpRequest.newBuilder(URI.create(server.url("/v2/repository/models/" + action)))
                            .POST(HttpRequest.BodyPublishers.ofString(body))
                            .build(),
                    HttpResponse.BodyHandlers.ofString());
            if (reply.statusCode() != 200) {
                throw new IOException(action + " was refused: " + reply.body());
            }
        }
    }
}
