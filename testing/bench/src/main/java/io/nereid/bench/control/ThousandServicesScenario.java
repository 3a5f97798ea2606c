// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.control;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.ControlPlaneServer;
import io.nereid.bench.harness.ProcessStatistics;
import io.nereid.bench.scenario.Scenario;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/**
 * A thousand InferenceServices: the time until all are accepted and ready, the CPU use of the idle server, and the time
 * until all are ready after a restart. Stateless.
 */
public final class ThousandServicesScenario implements Scenario {
    private static final int SERVICES = 1000;
    private static final double IDLE_SECONDS = 30;
    private static final long SETTLE_MILLIS = 5_000;
    private static final double MAX_IDLE = 0.02;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        Path model = setting.directory("thousand-model");
        Files.copy(setting.examples().resolve("iris/1/model.onnx"), model.resolve("model.onnx"));
        double taken;
        double ready;
        double readyCpu;
        double memory;
        double idle;
        try (ControlPlaneServer plane = ControlPlaneServer.start(setting, "thousand")) {
            double before = ProcessStatistics.cpu(plane.server().pid(), false);
            long from = System.nanoTime();
            for (int i = 0; i < SERVICES; i++) {
                plane.apply("s" + i, "onnx", model, "");
            }
            taken = (System.nanoTime() - from) / 1e9;
            ControlPlaneServer.await("all services ready", 300, 100, () -> plane.ready() == SERVICES);
            answer(plane);
            ready = (System.nanoTime() - from) / 1e9;
            readyCpu = ProcessStatistics.cpu(plane.server().pid(), false) - before;
            setting.log(
                    "all accepted after %.2f s, all ready after %.2f s, %.1f s of processor" + " time",
                    taken, ready, readyCpu);
            ControlPlaneServer.pause(SETTLE_MILLIS);
            before = ProcessStatistics.cpu(plane.server().pid(), false);
            ControlPlaneServer.pause((long) (1e3 * IDLE_SECONDS));
            idle = (ProcessStatistics.cpu(plane.server().pid(), false) - before) / IDLE_SECONDS;
            memory = ProcessStatistics.residentBytes(plane.server().pid()) / 1e6;
            setting.log("idle: %.2f %% of a core, %.0f MB resident", 100 * idle, memory);
        }
        double again;
        double againCpu;
        long from = System.nanoTime();
        try (ControlPlaneServer plane = ControlPlaneServer.start(setting, "thousand")) {
            answer(plane);
            again = (System.nanoTime() - from) / 1e9;
            againCpu = ProcessStatistics.cpu(plane.server().pid(), false);
            setting.log("restarted: all ready after %.2f s, %.1f s of processor time", again, againCpu);
        }
        return List.of(
                new BenchmarkResult(
                        "1,000 InferenceServices applied one after the other, to all ready",
                        "",
                        String.format(Locale.ROOT, "%.1f s", ready),
                        "",
                        String.format(
                                Locale.ROOT,
                                "all accepted after %.1f s; %.1f s of processor time; %.0f MB resident; "
                                        + "server restarted: all ready after %.1f s, %.1f s of processor time",
                                taken,
                                readyCpu,
                                memory,
                                again,
                                againCpu),
                        "",
                        "-"),
                new BenchmarkResult(
                        "the same, idle",
                        "",
                        String.format(Locale.ROOT, "%.2f %% of a core", 100 * idle),
                        "",
                        "",
                        "< 2 % of a core",
                        BenchmarkResult.verdict(idle < MAX_IDLE)));
    }

    /** Waits until every service's model is ready. */
    private static void answer(ControlPlaneServer plane) throws IOException, InterruptedException {
        for (int i = 0; i < SERVICES; i++) {
            String name = "s" + i;
            ControlPlaneServer.await("'" + name + "' ready", 300, 20, () -> plane.answers(name));
        }
    }
}
