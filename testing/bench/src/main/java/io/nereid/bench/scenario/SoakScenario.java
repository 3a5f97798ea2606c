// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.LoadGenerator;
import io.nereid.bench.harness.MemoryProbe;
import io.nereid.bench.harness.RequestBodies;
import io.nereid.bench.harness.ServerProcess;
import io.nereid.bench.harness.SoakClients;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/**
 * Saturation on {@code simple} with a heap of 512 MB, while a model is loaded and unloaded, workers of a Python model are
 * killed, and clients leave or are slow. No request may fail except those that ran in a killed worker, and nothing that
 * the server holds may grow. The interpreter is {@code NEREID_TEST_PYTHON} or {@code python3}. Stateless.
 */
public final class SoakScenario implements Scenario {
    private static final int SAMPLES = 40;

    private static final String MODEL = """
        import os
        import struct
        import time
        import triton_python_backend_utils as pb_utils
        class TritonPythonModel:
            def execute(self, requests):
                time.sleep(0.01)
                return [pb_utils.InferenceResponse([pb_utils.Tensor.of('PID', 'TYPE_INT32', [1],
                    struct.pack('<i', os.getpid()))]) for request in requests]
        """;
    private static final String CONFIG = """
        backend: "python"
        input [ { name: "IN" data_type: TYPE_FP32 dims: [ 1 ] } ]
        output [ { name: "PID" data_type: TYPE_INT32 dims: [ 1 ] } ]
        instance_group [ { count: 2 kind: KIND_CPU } ]
        """;
    private static final String PYTHON_BODY =
            "{\"inputs\":[{\"name\":\"IN\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]}]}";

    @Override
    public boolean required() {
        return true;
    }

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        LoadGenerator driven = new RequestBodies(setting.scratch()).simple(16);
        String work = String.format(Locale.ROOT, "soak, %.0f s at saturation", setting.soakSeconds());
        if (!LoadGenerator.onPath(driven.program())) {
            setting.log("SKIPPED: %s is not on the PATH", driven.program());
            return List.of(BenchmarkResult.skipped(work, driven.program() + " is not on the PATH"));
        }
        Path repository = setting.directory("soak");
        StartupScenario.copy(setting.examples().resolve("simple"), repository.resolve("simple"));
        StartupScenario.copy(setting.examples().resolve("iris"), repository.resolve("iris"));
        Files.writeString(
                Files.createDirectories(repository.resolve("py").resolve("1")).resolve("model.py"), MODEL);
        Files.writeString(repository.resolve("py").resolve("config.pbtxt"), CONFIG);
        String named = System.getenv("NEREID_TEST_PYTHON");
        ExecutorService driver = Executors.newSingleThreadExecutor();
        try (ServerProcess server = ServerProcess.nereid(
                        Map.of("NEREID_JAVA_OPTS", "-Xmx512m"),
                        setting.distribution(),
                        repository,
                        setting.scratch(),
                        "--model-control-mode",
                        "explicit",
                        "--load-model",
                        "simple",
                        "--load-model",
                        "py",
                        "--backend-config",
                        "python,python=" + (named == null || named.isEmpty() ? "python3" : named));
                SoakClients clients = new SoakClients(server, Files.readString(driven.body()), PYTHON_BODY)) {
            Future<LoadGenerator.Outcome> load =
                    driver.submit(() -> driven.run(server, setting.soakSeconds(), setting.scratch()));
            clients.start();
            MemoryProbe probe = new MemoryProbe(server);
            LoadGenerator.Outcome outcome = watch(setting, load, probe);
            clients.end();
            return List.of(judged(setting, work, outcome, clients, probe));
        } finally {
            driver.shutdownNow();
        }
    }

    private static LoadGenerator.Outcome watch(
            BenchmarkSettings setting, Future<LoadGenerator.Outcome> load, MemoryProbe probe)
            throws IOException, InterruptedException {
        long period = Math.max(1000, Math.round(setting.soakSeconds() * 1000 / SAMPLES));
        while (true) {
            try {
                return load.get(period, TimeUnit.MILLISECONDS);
            } catch (TimeoutException e) {
                probe.sample();
            } catch (ExecutionException e) {
                throw new IOException("the load failed: " + e.getCause(), e);
            }
        }
    }

    private static BenchmarkResult judged(
            BenchmarkSettings setting,
            String work,
            LoadGenerator.Outcome outcome,
            SoakClients clients,
            MemoryProbe probe) {
        probe.lines().forEach(line -> setting.log("%s", line));
        clients.failures().forEach((how, count) -> setting.log("FAILED %s times: %s", count, how));
        List<String> grown = probe.grown();
        grown.forEach(line -> setting.log("GREW: %s", line));
        if (clients.tooManyInKilled()) {
            setting.log("FAILED: more requests failed in killed workers than workers were killed");
        }
        boolean reached =
                outcome.failed() == 0 && clients.failures().isEmpty() && !clients.tooManyInKilled() && grown.isEmpty();
        return new BenchmarkResult(
                work,
                "",
                String.format(
                        Locale.ROOT,
                        "%d of %d failed, p99 %.2f ms",
                        outcome.failed(),
                        outcome.requests(),
                        outcome.p99()),
                "",
                clients.summary() + "; " + probe.summary(),
                "none failed, no growth",
                BenchmarkResult.verdict(reached));
    }
}
