// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.LoadGenerator;
import io.nereid.bench.harness.ProcessStatistics;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerProcess;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** Saturation on {@code simple} while another model is loaded or unloaded every five seconds. Stateless. */
public final class SoakScenario implements Scenario {
    private static final double PERIOD = 5;
    /** Tolerated growth of resident memory: less than a few allocator chunks. */
    private static final double SLACK_MEGABYTES = 4;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        LoadGenerator driven = new RequestBodies(setting.scratch()).simple(16);
        String work = String.format(Locale.ROOT, "soak, %.0f s at saturation with load/unload", setting.soakSeconds());
        if (!LoadGenerator.onPath(driven.program())) {
            setting.log("SKIPPED: %s is not on the PATH", driven.program());
            return List.of(BenchmarkResult.skipped(work, driven.program() + " is not on the PATH"));
        }
        Path repository = setting.directory("soak");
        StartupScenario.copy(setting.examples().resolve("simple"), repository.resolve("simple"));
        StartupScenario.copy(setting.examples().resolve("iris"), repository.resolve("iris"));
        ExecutorService driver = Executors.newSingleThreadExecutor();
        try (ServerProcess server = ServerProcess.nereid(
                setting.distribution(),
                repository,
                setting.scratch(),
                "--model-control-mode",
                "explicit",
                "--load-model",
                "simple")) {
            Future<LoadGenerator.Outcome> load =
                    driver.submit(() -> driven.run(server, setting.soakSeconds(), setting.scratch()));
            return List.of(watch(setting, work, server, load));
        } finally {
            driver.shutdownNow();
        }
    }

    private static BenchmarkResult watch(
            BenchmarkSettings setting, String work, ServerProcess server, Future<LoadGenerator.Outcome> load)
            throws IOException, InterruptedException {
        HttpClient client = HttpClient.newHttpClient();
        List<Double> megabytes = new ArrayList<>();
        int swaps = 0;
        int failedTransitions = 0;
        boolean loaded = false;
        LoadGenerator.Outcome outcome = null;
        while (outcome == null) {
            try {
                outcome = load.get((long) PERIOD, TimeUnit.SECONDS);
            } catch (TimeoutException e) {
                megabytes.add(ProcessStatistics.residentBytes(server.pid()) / 1e6);
                failedTransitions +=
                        post(client, server.url("/v2/repository/models/iris/" + (loaded ? "unload" : "load")));
                loaded = !loaded;
                swaps++;
            } catch (ExecutionException e) {
                throw new IOException("the load failed: " + e.getCause(), e);
            }
        }
        int settled = Math.min(megabytes.size() - 1, (int) (Math.min(60, setting.soakSeconds() / 2) / PERIOD));
        double then = around(megabytes, settled);
        double last = around(megabytes, megabytes.size() - 1);
        double peak = megabytes.stream().mapToDouble(m -> m).max().orElse(0);
        setting.log(
                "resident MB every %.0f s: %s",
                PERIOD, megabytes.stream().map(Math::round).toList());
        boolean reached = outcome.failed() == 0 && failedTransitions == 0 && last - then <= SLACK_MEGABYTES;
        return new BenchmarkResult(
                work,
                "",
                String.format(Locale.ROOT, "%d of %d failed", outcome.failed(), outcome.requests()),
                "",
                String.format(
                        Locale.ROOT,
                        "%.0f MB then, %.0f MB at the end, %.0f MB at most; %d of %d transitions failed; p99 %.2f ms",
                        then,
                        last,
                        peak,
                        failedTransitions,
                        swaps,
                        outcome.p99()),
                "none failed, no growth",
                BenchmarkResult.verdict(reached));
    }

    /** Returns the median of up to three values, the last of them at {@code i}. */
    private static double around(List<Double> values, int i) {
        return i < 0
                ? 0
                : BenchmarkResult.median(values.subList(Math.max(0, i - 2), i + 1).stream()
                        .mapToDouble(v -> v)
                        .toArray());
    }

    private static int post(HttpClient client, String url) throws IOException, InterruptedException {
        HttpResponse<String> reply = client.send(
                HttpRequest.newBuilder(URI.create(url))
                        .POST(HttpRequest.BodyPublishers.noBody())
                        .build(),
                HttpResponse.BodyHandlers.ofString());
        if (reply.statusCode() != 200) {
            System.err.println(url + " gave " + reply.statusCode() + ": " + reply.body());
        }
        return reply.statusCode() == 200 ? 0 : 1;
    }
}
