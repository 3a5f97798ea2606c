// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;

/**
 * From zero to the first answer: InferenceServices of the iris model have scaled to zero by themselves, and each gets one request, one
 * after the other, again and again. Has no state.
 */
final class ColdStartRow implements Bench.Row {
    private static final int SERVICES = 30;
    private static final int TIMES = 4;
    private static final double MAX_MILLIS = 300;
    /** The shortest window that there is, and no time to stay beyond it. */
    private static final String TO_ZERO = "\"minReplicas\":0,\"annotations\":{"
            + "\"autoscaling.knative.dev/window\":\"6s\","
            + "\"autoscaling.knative.dev/scale-to-zero-pod-retention-period\":\"0s\"},";

    private static final String BODY =
            "{\"inputs\":[{\"name\":\"input\",\"datatype\":\"FP32\",\"shape\":[1,4],\"data\":[5.1,3.5,1.4,0.2]}]}";

    @Override
    public List<Figure> measure(Bench.Setting setting) throws IOException, InterruptedException {
        Path model = setting.directory("iris");
        Files.copy(setting.examples().resolve("iris/1/model.onnx"), model.resolve("model.onnx"));
        double[] cold = new double[SERVICES * TIMES];
        double[] warm = new double[SERVICES * TIMES];
        try (Plane plane = Plane.start(setting, "cold")) {
            for (int i = 0; i < SERVICES; i++) {
                plane.apply("c" + i, "onnx", model, TO_ZERO);
            }
            Plane.await("all services ready", 60, 100, () -> plane.ready() == SERVICES);
            long held = held(plane);
            double cpu = 0;
            for (int time = 0; time < TIMES; time++) {
                Plane.await("all services at zero", 120, 200, () -> plane.present() == 0);
                double before = Proc.cpu(plane.server().pid(), false);
                for (int i = 0; i < SERVICES; i++) {
                    cold[time * SERVICES + i] = plane.infer("c" + i, BODY) / 1e6;
                }
                cpu += Proc.cpu(plane.server().pid(), false) - before;
                for (int i = 0; i < SERVICES; i++) {
                    warm[time * SERVICES + i] = plane.infer("c" + i, BODY) / 1e6;
                }
                double[] some = Arrays.copyOfRange(cold, time * SERVICES, (time + 1) * SERVICES);
                setting.say("%d cold starts: %s", SERVICES, Figure.spread(some, "ms"));
            }
            long count = held(plane) - held;
            if (count != cold.length) {
                throw new IOException(count + " of " + cold.length + " requests found no replica; all should have");
            }
            double p99 = percentile(cold, 0.99);
            return List.of(new Figure(
                    "cold start: InferenceService of iris (ONNX) at zero, one request to its answer, REST",
                    String.format(Locale.ROOT, "%.2f ms when it is there", Figure.median(warm)),
                    String.format(
                            Locale.ROOT,
                            "p50 %.1f p99 %.1f max %.1f ms",
                            Figure.median(cold),
                            p99,
                            percentile(cold, 1)),
                    "",
                    String.format(
                            Locale.ROOT,
                            "%d starts, %.1f ms of processor time each",
                            cold.length,
                            1e3 * cpu / cold.length),
                    String.format(Locale.ROOT, "p99 <= %.0f ms", MAX_MILLIS),
                    Figure.verdict(p99 <= MAX_MILLIS)));
        }
    }

    /** Requests that came while there was no replica. */
    private static long held(Plane plane) throws IOException, InterruptedException {
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
