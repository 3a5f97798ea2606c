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
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * Cold start latency: InferenceServices of the iris model have scaled to zero, then each receives one request, one
 * after the other, in several rounds. Stateless.
 */
public final class ColdStartScenario implements Scenario {
    private static final int SERVICES = 30;
    private static final int TIMES = 4;
    private static final double MAX_MILLIS = 300;
    /** Scale to zero with the shortest stable window and without a retention period. */
    private static final String TO_ZERO = "\"minReplicas\":0,\"annotations\":{"
            + "\"autoscaling.knative.dev/window\":\"6s\","
            + "\"autoscaling.knative.dev/scale-to-zero-pod-retention-period\":\"0s\"},";

    private static final String BODY =
            "{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\",\"shape\":[1,4],\"data\":[5.1,3.5,1.4,0.2]}]}";

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        Path model = setting.directory("iris");
        Files.copy(setting.examples().resolve("iris/1/model.onnx"), model.resolve("model.onnx"));
        double[] cold = new double[SERVICES * TIMES];
        double[] warm = new double[SERVICES * TIMES];
        try (ControlPlaneServer plane = ControlPlaneServer.start(setting, "cold")) {
            for (int i = 0; i < SERVICES; i++) {
                plane.apply("c" + i, "onnx", model, TO_ZERO);
            }
            ControlPlaneServer.await("all services ready", 60, 100, () -> plane.ready() == SERVICES);
            long held = held(plane);
            double cpu = 0;
            for (int time = 0; time < TIMES; time++) {
                ControlPlaneServer.await("all services at zero", 120, 200, () -> plane.present() == 0);
                double before = ProcessStatistics.cpu(plane.server().pid(), false);
                for (int i = 0; i < SERVICES; i++) {
                    cold[time * SERVICES + i] = plane.infer("c" + i, BODY) / 1e6;
                }
                cpu += ProcessStatistics.cpu(plane.server().pid(), false) - before;
                for (int i = 0; i < SERVICES; i++) {
                    warm[time * SERVICES + i] = plane.infer("c" + i, BODY) / 1e6;
                }
                double[] some = Arrays.copyOfRange(cold, time * SERVICES, (time + 1) * SERVICES);
                setting.log("%d cold starts: %s", SERVICES, BenchmarkResult.spread(some, "ms"));
            }
            long count = held(plane) - held;
            if (count != cold.length) {
                throw new IOException(count + " of " + cold.length + " requests were cold starts (expected: all)");
            }
            double p99 = percentile(cold, 0.99);
            return List.of(new BenchmarkResult(
                    "cold start: InferenceService of iris (ONNX) at zero, one request to its answer, REST",
                    String.format(Locale.ROOT, "%.2f ms when it is there", BenchmarkResult.median(warm)),
                    String.format(
                            Locale.ROOT,
                            "p50 %.1f p99 %.1f max %.1f ms",
                            BenchmarkResult.median(cold),
                            p99,
                            percentile(cold, 1)),
                    "",
                    String.format(
                            Locale.ROOT,
                            "%d starts, %.1f ms of processor time each",
                            cold.length,
                            1e3 * cpu / cold.length),
                    String.format(Locale.ROOT, "p99 <= %.0f ms", MAX_MILLIS),
                    BenchmarkResult.verdict(p99 <= MAX_MILLIS)));
        }
    }

    /** Returns the number of requests that arrived without a replica. */
    private static long held(ControlPlaneServer plane) throws IOException, InterruptedException {
        return plane.page("/metrics")
                .lines()
                .filter(l -> l.startsWith("nereid_gateway_held_total{"))
                .mapToLong(l -> (long) Double.parseDouble(l.substring(l.lastIndexOf(' ') + 1)))
                .sum();
    }

    private static double percentile(double[] values, double part) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[Math.max(0, (int) Math.ceil(part * sorted.length) - 1)];
    }
}
