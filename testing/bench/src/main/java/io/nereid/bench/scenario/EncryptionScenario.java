// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.LoadGenerator;
import io.nereid.bench.harness.MeasuredRound;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerProcess;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;

/**
 * What TLS costs a request: the identity model with 16 floats over 16 connections, encrypted and not, in alternating rounds. The load
 * generator encrypts on the same processors. Stateless.
 */
public final class EncryptionScenario implements Scenario {
    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        if (!LoadGenerator.onPath("openssl")) {
            setting.log("SKIPPED: openssl is not on the PATH");
            return List.of(BenchmarkResult.skipped("TLS", "openssl is not on the PATH"));
        }
        Path directory = setting.directory("tls");
        Path key = directory.resolve("key.pem");
        Path certificate = directory.resolve("certificate.pem");
        certificate(key, certificate);
        Path models = RequestBodies.identity(setting.directory("identity"));
        List<BenchmarkResult> results = new ArrayList<>();
        RequestBodies bodies = new RequestBodies(setting.scratch());
        try (ServerProcess plain = ServerProcess.nereid(setting.distribution(), models, setting.scratch());
                ServerProcess encrypted = ServerProcess.nereid(
                                setting.distribution(),
                                models,
                                setting.scratch(),
                                "--tls-cert",
                                certificate.toString(),
                                "--tls-key",
                                key.toString())
                        .named("TLS")) {
            for (LoadGenerator load : List.of(bodies.restSmall(), bodies.grpcSmall(16, 1))) {
                results.add(row(load, plain, encrypted, setting));
            }
        }
        return results;
    }

    private static BenchmarkResult row(
            LoadGenerator load, ServerProcess plain, ServerProcess encrypted, BenchmarkSettings setting)
            throws IOException, InterruptedException {
        String work = String.format(
                Locale.ROOT, "TLS, V2 %s, 16 floats, 16 connections", load.grpc() ? "gRPC raw" : "REST JSON");
        if (!LoadGenerator.onPath(load.program())) {
            setting.log("SKIPPED: %s is not on the PATH", load.program());
            return BenchmarkResult.skipped(work, load.program() + " is not on the PATH");
        }
        load.run(plain, setting.warmup(), setting.scratch());
        load.run(encrypted, setting.warmup(), setting.scratch());
        List<MeasuredRound> without = new ArrayList<>();
        List<MeasuredRound> with = new ArrayList<>();
        for (int i = 0; i < setting.rounds(); i++) {
            without.add(MeasuredRound.of(load, plain, encrypted, setting));
            with.add(MeasuredRound.of(load, encrypted, plain, setting));
        }
        double ratio = median(with, MeasuredRound::micros) / median(without, MeasuredRound::micros);
        return new BenchmarkResult(
                work,
                BenchmarkResult.spread(of(without, MeasuredRound::micros), "us CPU/req"),
                BenchmarkResult.spread(of(with, MeasuredRound::micros), "us CPU/req"),
                String.format(Locale.ROOT, "%.2f", ratio),
                String.format(
                        Locale.ROOT,
                        "p50 %.3f and %.3f ms, p99 %.3f and %.3f ms, %.0f and %.0f req/s",
                        median(without, MeasuredRound::p50),
                        median(with, MeasuredRound::p50),
                        median(without, MeasuredRound::p99),
                        median(with, MeasuredRound::p99),
                        median(without, MeasuredRound::rate),
                        median(with, MeasuredRound::rate)),
                "",
                "-");
    }

    private static double[] of(List<MeasuredRound> rounds, ToDoubleFunction<MeasuredRound> value) {
        return rounds.stream().mapToDouble(value).toArray();
    }

    private static double median(List<MeasuredRound> rounds, ToDoubleFunction<MeasuredRound> value) {
        return BenchmarkResult.median(of(rounds, value));
    }

    /** Makes a key on the curve P-256 and a certificate of its own. */
    private static void certificate(Path key, Path certificate) throws IOException, InterruptedException {
        Process process = new ProcessBuilder(
                        "openssl",
                        "req",
                        "-x509",
                        "-newkey",
                        "ec",
                        "-pkeyopt",
                        "ec_paramgen_curve:prime256v1",
                        "-nodes",
                        "-keyout",
                        key.toString(),
                        "-out",
                        certificate.toString(),
                        "-days",
                        "2",
                        "-subj",
                        "/CN=localhost")
                .redirectErrorStream(true)
                .start();
        String output = new String(process.getInputStream().readAllBytes(), java.nio.charset.StandardCharsets.UTF_8);
        if (process.waitFor() != 0) {
            throw new IOException("openssl made no certificate:\n" + output);
        }
    }
}
