// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import io.nereid.bench.harness.AllocationProbe;
import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.LoadGenerator;
import io.nereid.bench.harness.ProcessStatistics;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerProcess;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.Function;

/**
 * What API keys and quotas cost: the identity model with a key, its quota and the model's quota checked for every
 * request, compared with the same server without them, which gets the same requests, in alternating rounds. The measures
 * are the CPU time of the server process per request, with the 95 % interval of the mean ratio, and the bytes allocated
 * per request.
 * Stateless.
 */
public final class AccessScenario implements Scenario {
    private static final int MIN_ROUNDS = 10;
    private static final double MAX_RATIO = 1.03;

    /** Quotas that the load does not reach, so that they are counted and never refuse. */
    private static final String RULES = """
        bindings:
          - key: bench
            quota: {requestsPerSecond: 10000000, concurrentRequests: 100000, bytesPerSecond: 1000GiB}
        quotas:
          models:
            m: {concurrentRequests: 100000, requestsPerSecond: 10000000}
        """;

    /** One round: CPU microseconds and allocated bytes per request. */
    private record Round(double micros, double bytes) {}

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        List<BenchmarkResult> results = new ArrayList<>();
        results.add(measure(setting, "keys and quotas, V2 REST JSON, 16 floats", RequestBodies::restSmall));
        results.add(measure(setting, "keys and quotas, V2 gRPC raw, 16 floats", b -> b.grpcSmall(16, 1)));
        return results;
    }

    private static BenchmarkResult measure(
            BenchmarkSettings setting, String work, Function<RequestBodies, LoadGenerator> load)
            throws IOException, InterruptedException {
        LoadGenerator open = load.apply(new RequestBodies(setting.scratch()));
        if (!LoadGenerator.onPath(open.program())) {
            return BenchmarkResult.skipped(work, open.program() + " is not on the PATH");
        }
        Path models = RequestBodies.identity(setting.directory("identity"));
        Path keys = Files.createTempDirectory(setting.scratch(), "keys").resolve("keys.json");
        Path rules = Files.writeString(keys.resolveSibling("access.yaml"), RULES);
        LoadGenerator keyed = open.with("authorization", "Bearer " + key(setting, keys));
        List<Round> without = new ArrayList<>();
        List<Round> with = new ArrayList<>();
        int rounds = Math.max(MIN_ROUNDS, setting.rounds());
        try (ServerProcess plain = ServerProcess.nereid(setting.distribution(), models, setting.scratch());
                ServerProcess secured = ServerProcess.nereid(
                        setting.distribution(),
                        models,
                        setting.scratch(),
                        "--api-keys",
                        keys.toString(),
                        "--access-config",
                        rules.toString());
                AllocationProbe plainProbe = new AllocationProbe(plain);
                AllocationProbe securedProbe = new AllocationProbe(secured)) {
            keyed.run(plain, setting.warmup(), setting.scratch());
            keyed.run(secured, setting.warmup(), setting.scratch());
            for (int i = 0; i < rounds; i++) {
                // the order alternates, so that a trend of the machine is not taken for a difference
                if (i % 2 == 0) {
                    without.add(round(keyed, plain, plainProbe, setting));
                    with.add(round(keyed, secured, securedProbe, setting));
                } else {
                    with.add(round(keyed, secured, securedProbe, setting));
                    without.add(round(keyed, plain, plainProbe, setting));
                }
                setting.log(
                        "without %.2f us %.0f bytes, with %.2f us %.0f bytes a request",
                        without.get(i).micros, without.get(i).bytes, with.get(i).micros, with.get(i).bytes);
            }
        }
        double[] ratios = new double[rounds];
        for (int i = 0; i < rounds; i++) {
            ratios[i] = with.get(i).micros / without.get(i).micros;
        }
        BenchmarkResult.Interval interval = BenchmarkResult.Interval.ofRatios(ratios);
        double bytes = median(with) - median(without);
        return new BenchmarkResult(
                work,
                BenchmarkResult.spread(
                        without.stream().mapToDouble(Round::micros).toArray(), "us CPU/req"),
                BenchmarkResult.spread(with.stream().mapToDouble(Round::micros).toArray(), "us CPU/req"),
                String.format(Locale.ROOT, "%.3f", interval.mean()),
                String.format(
                        Locale.ROOT,
                        "95 %% interval %.3f to %.3f over %d rounds; %.0f bytes allocated without, %+.0f (%+.1f %%) with",
                        interval.low(),
                        interval.high(),
                        rounds,
                        median(without),
                        bytes,
                        100 * bytes / median(without)),
                String.format(Locale.ROOT, "the interval reaches <= %.2f, and bytes too", MAX_RATIO),
                BenchmarkResult.verdict(interval.low() <= MAX_RATIO && 1 + bytes / median(without) <= MAX_RATIO));
    }

    private static double median(List<Round> rounds) {
        return BenchmarkResult.median(rounds.stream().mapToDouble(Round::bytes).toArray());
    }

    private static Round round(
            LoadGenerator load, ServerProcess server, AllocationProbe allocation, BenchmarkSettings setting)
            throws IOException, InterruptedException {
        double cpu = ProcessStatistics.cpu(server.pid(), false);
        double bytes = allocation.bytes();
        LoadGenerator.Outcome outcome = load.run(server, setting.seconds(), setting.scratch());
        if (outcome.failed() > 0 || outcome.requests() == 0) {
            throw new IOException(outcome.failed() + " of " + outcome.requests() + " requests failed");
        }
        return new Round(
                (ProcessStatistics.cpu(server.pid(), false) - cpu) * 1e6 / outcome.requests(),
                (allocation.bytes() - bytes) / outcome.requests());
    }

    private static String key(BenchmarkSettings setting, Path file) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(
                        setting.distribution().resolve("bin/nereid").toString(),
                        "keys",
                        "create",
                        "bench",
                        "--role",
                        "client",
                        "--file",
                        file.toString())
                .redirectError(ProcessBuilder.Redirect.INHERIT)
                .start();
        String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (process.waitFor() != 0) {
            throw new IOException("no key was made");
        }
        return text.strip().lines().reduce((first, second) -> second).orElseThrow();
    }
}
