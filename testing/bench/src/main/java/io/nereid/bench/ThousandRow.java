// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/**
 * A thousand InferenceServices: how long until all are taken and answer, what the server costs while nobody asks, and how long
 * until all answer after it was started again. Has no state.
 */
final class ThousandRow implements Bench.Row {
    private static final int SERVICES = 1000;
    private static final double IDLE_SECONDS = 30;
    private static final long SETTLE_MILLIS = 5_000;
    private static final double MAX_IDLE = 0.02;

    @Override
    public List<Figure> measure(Bench.Setting setting) throws IOException, InterruptedException {
        Path model = setting.directory("thousand-model");
        Files.copy(setting.examples().resolve("iris/1/model.onnx"), model.resolve("model.onnx"));
        double taken;
        double ready;
        double readyCpu;
        double memory;
        double idle;
        try (Plane plane = Plane.start(setting, "thousand")) {
            double before = Proc.cpu(plane.server().pid(), false);
            long from = System.nanoTime();
            for (int i = 0; i < SERVICES; i++) {
                plane.apply("s" + i, "onnx", model, "");
            }
            taken = (System.nanoTime() - from) / 1e9;
            Plane.await("all services ready", 300, 100, () -> plane.ready() == SERVICES);
            answer(plane);
            ready = (System.nanoTime() - from) / 1e9;
            readyCpu = Proc.cpu(plane.server().pid(), false) - before;
            setting.say(
                    "all taken after %.2f s, all ready after %.2f s, %.1f s of processor time", taken, ready, readyCpu);
            Plane.pause(SETTLE_MILLIS);
            before = Proc.cpu(plane.server().pid(), false);
            Plane.pause((long) (1e3 * IDLE_SECONDS));
            idle = (Proc.cpu(plane.server().pid(), false) - before) / IDLE_SECONDS;
            memory = Proc.residentBytes(plane.server().pid()) / 1e6;
            setting.say("idle: %.2f %% of a core, %.0f MB resident", 100 * idle, memory);
        }
        double again;
        double againCpu;
        long from = System.nanoTime();
        try (Plane plane = Plane.start(setting, "thousand")) {
            answer(plane);
            again = (System.nanoTime() - from) / 1e9;
            againCpu = Proc.cpu(plane.server().pid(), false);
            setting.say("started again: all ready after %.2f s, %.1f s of processor time", again, againCpu);
        }
        return List.of(
                new Figure(
                        "1,000 InferenceServices applied one after the other, to all ready",
                        "",
                        String.format(Locale.ROOT, "%.1f s", ready),
                        "",
                        String.format(
                                Locale.ROOT,
                                "all taken after %.1f s; %.1f s of processor time; %.0f MB resident; "
                                        + "server started again: all ready after %.1f s, %.1f s of processor time",
                                taken,
                                readyCpu,
                                memory,
                                again,
                                againCpu),
                        "",
                        "-"),
                new Figure(
                        "the same, idle",
                        "",
                        String.format(Locale.ROOT, "%.2f %% of a core", 100 * idle),
                        "",
                        "",
                        "< 2 % of a core",
                        Figure.verdict(idle < MAX_IDLE)));
    }

    /** Waits until every service's model answers. */
    private static void answer(Plane plane) throws IOException, InterruptedException {
        for (int i = 0; i < SERVICES; i++) {
            String name = "s" + i;
            Plane.await("'" + name + "' ready", 300, 20, () -> plane.answers(name));
        }
    }
}
