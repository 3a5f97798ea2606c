// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.ProcessStatistics;
import io.nereid.bench.harness.ServerProcess;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.locks.LockSupport;

/** Startup time of the launcher until {@code simple} is ready, and resident memory when idle. Stateless. */
public final class StartupScenario implements Scenario {
    private static final double MAX_SECONDS = 1.5;
    private static final double MAX_MEGABYTES = 250;
    private static final long IDLE_NANOS = 3_000_000_000L;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException {
        Path repository = setting.directory("start");
        copy(setting.examples().resolve("simple"), repository.resolve("simple"));
        // The first start on a machine creates the class-data archive.
        ServerProcess.nereid(setting.distribution(), repository, setting.scratch())
                .close();
        int runs = Math.max(5, setting.rounds());
        double[] seconds = new double[runs];
        double[] megabytes = new double[runs];
        for (int i = 0; i < runs; i++) {
            try (ServerProcess server = ServerProcess.nereid(setting.distribution(), repository, setting.scratch())) {
                seconds[i] = server.secondsToReady();
                long until = System.nanoTime() + IDLE_NANOS;
                while (System.nanoTime() - until < 0) {
                    LockSupport.parkNanos(until - System.nanoTime());
                }
                megabytes[i] = ProcessStatistics.residentBytes(server.pid()) / 1e6;
                setting.log("ready after %.2f s, %.0f MB resident", seconds[i], megabytes[i]);
            }
        }
        return List.of(
                new BenchmarkResult(
                        "start of serve with simple, to ready",
                        "",
                        BenchmarkResult.spread(seconds, "s"),
                        "",
                        "",
                        String.format(Locale.ROOT, "<= %.1f s", MAX_SECONDS),
                        BenchmarkResult.verdict(BenchmarkResult.median(seconds) <= MAX_SECONDS)),
                new BenchmarkResult(
                        "resident memory, idle",
                        "",
                        BenchmarkResult.spread(megabytes, "MB"),
                        "",
                        "",
                        String.format(Locale.ROOT, "<= %.0f MB", MAX_MEGABYTES),
                        BenchmarkResult.verdict(BenchmarkResult.median(megabytes) <= MAX_MEGABYTES)));
    }

    /** Copies a model's directory. */
    static void copy(Path from, Path to) throws IOException {
        try (var all = Files.walk(from)) {
            for (Path p : all.toList()) {
                Path target = to.resolve(from.relativize(p).toString());
                if (Files.isDirectory(p)) {
                    Files.createDirectories(target);
                } else {
                    Files.copy(p, target);
                }
            }
        }
    }
}
