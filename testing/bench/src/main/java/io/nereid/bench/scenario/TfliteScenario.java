// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import com.sun.management.OperatingSystemMXBean;
import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.EmbeddedEngine;
import io.nereid.bench.harness.TfliteLoop;
import io.nereid.spi.ModelRef;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Random;

/**
 * MobileNetV2 in TensorFlow Lite, one request after another through the engine, compared with a plain loop of the same
 * library's C++ classes with XNNPACK and one thread each: one picture in a request, and one to four in turn, where the
 * loop has an interpreter for each number and the engine one for all. The two alternate round by
 * round. The target is for CPU time, which other programs of the machine disturb least. Stateless.
 */
public final class TfliteScenario implements Scenario {
    private static final OperatingSystemMXBean PROCESS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
    private static final int SIDE = 224;
    private static final int MOST = 4;
    private static final int ROUNDS = 15;
    private static final double MAX_RATIO = 1.15;
    /** Answers may differ by this part of a value, and by this much of a value near zero. */
    private static final double TOLERANCE = 1e-4;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException {
        Path file = setting.root().resolve("testing/bench/target/mobilenet_v2.tflite");
        if (!Files.isRegularFile(file)) {
            String missing = file + " is missing; python3 testing/bench/make_mobilenet.py makes it";
            setting.log("SKIPPED: %s", missing);
            return List.of(BenchmarkResult.skipped("tflite", missing));
        }
        Path repository = setting.directory("tflite");
        // One instance: two would take turns, and the caches of the processor hold one copy of the weights at most.
        EmbeddedEngine.write(repository, "mobilenet", "instance_group [ { count: 1 } ]\n");
        Files.copy(file, repository.resolve("mobilenet/1/model.tflite"));
        List<TfliteLoop> loops = new ArrayList<>();
        try (EmbeddedEngine engine = EmbeddedEngine.of(repository)) {
            float[] pixels = pixels();
            double differ = 0;
            for (int rows = 1; rows <= MOST; rows++) {
                TfliteLoop loop = new TfliteLoop(
                        file, new int[] {rows, SIDE, SIDE, 3}, Arrays.copyOf(pixels, rows * SIDE * SIDE * 3));
                loops.add(loop);
                differ = Math.max(differ, difference(loop.run(), answer(engine, pixels, rows)));
            }
            return List.of(
                    compare("one picture a request", 1, setting, engine, loops, pixels, differ),
                    compare("1, 2, 3, 4 pictures in turn", MOST, setting, engine, loops, pixels, differ));
        } finally {
            loops.forEach(TfliteLoop::close);
        }
    }

    private static BenchmarkResult compare(
            String what,
            int most,
            BenchmarkSettings setting,
            EmbeddedEngine engine,
            List<TfliteLoop> loops,
            float[] pixels,
            double differ) {
        double[] plain = new double[ROUNDS];
        double[] own = new double[ROUNDS];
        double[] ratios = new double[ROUNDS];
        double[] waits = new double[ROUNDS];
        int pictures = most * (most + 1) / 2;
        int turns = 60 / pictures;
        for (int round = -3; round < ROUNDS; round++) {
            long[] begun = now();
            for (int i = 0; i < turns; i++) {
                for (int rows = 1; rows <= most; rows++) {
                    loops.get(rows - 1).run();
                }
            }
            long[] between = now();
            for (int i = 0; i < turns; i++) {
                for (int rows = 1; rows <= most; rows++) {
                    answer(engine, pixels, rows);
                }
            }
            long[] ended = now();
            if (round >= 0) {
                plain[round] = (between[0] - begun[0]) / 1e6 / pictures / turns;
                own[round] = (ended[0] - between[0]) / 1e6 / pictures / turns;
                ratios[round] = own[round] / plain[round];
                waits[round] = (double) (ended[1] - between[1]) / (between[1] - begun[1]);
            }
        }
        double ratio = BenchmarkResult.median(ratios);
        setting.log(
                "%s: %s, plain loop %s, ratio %s, of elapsed time %s",
                what,
                BenchmarkResult.spread(own, "ms"),
                BenchmarkResult.spread(plain, "ms"),
                BenchmarkResult.spread(ratios, "x"),
                BenchmarkResult.spread(waits, "x"));
        return new BenchmarkResult(
                "MobileNetV2 in TensorFlow Lite, one thread, " + what,
                BenchmarkResult.spread(plain, "ms CPU a picture, plain loop"),
                BenchmarkResult.spread(own, "ms CPU a picture"),
                BenchmarkResult.spread(ratios, ""),
                BenchmarkResult.spread(waits, "of elapsed time")
                        + String.format(Locale.ROOT, "; answers differ by %.1e", differ),
                "<= 1.15 x the loop",
                BenchmarkResult.verdict(ratio <= MAX_RATIO && differ <= TOLERANCE));
    }

    /** The process's CPU time and the time of the clock, in nanoseconds. */
    private static long[] now() {
        return new long[] {PROCESS.getProcessCpuTime(), System.nanoTime()};
    }

    private static float[] answer(EmbeddedEngine engine, float[] pixels, int rows) {
        Tensor input = Tensor.allocate("image", DataType.FP32, Shape.of(rows, SIDE, SIDE, 3));
        input.buffer().asFloatBuffer().put(pixels, 0, rows * SIDE * SIDE * 3);
        List<Tensor> outputs = engine.ask(ModelRef.latest("mobilenet"), List.of(input));
        float[] values = new float[outputs.get(0).byteLength() / Float.BYTES];
        outputs.get(0).buffer().asFloatBuffer().get(values);
        Tensor.closeAll(outputs);
        return values;
    }

    private static double difference(float[] expected, float[] actual) {
        double most = expected.length == actual.length ? 0 : Double.POSITIVE_INFINITY;
        for (int i = 0; i < Math.min(expected.length, actual.length); i++) {
            most = Math.max(most, Math.abs(expected[i] - actual[i]) / Math.max(TOLERANCE, Math.abs(expected[i])));
        }
        return most;
    }

    private static float[] pixels() {
        Random random = new Random(3);
        float[] pixels = new float[MOST * SIDE * SIDE * 3];
        for (int i = 0; i < pixels.length; i++) {
            pixels[i] = random.nextFloat() * 2 - 1;
        }
        return pixels;
    }
}
