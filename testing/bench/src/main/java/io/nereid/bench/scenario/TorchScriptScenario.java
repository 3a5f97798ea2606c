// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.EmbeddedEngine;
import io.nereid.bench.harness.TorchScriptLoop;
import io.nereid.bench.harness.TorchScriptLoop.RoundResult;
import io.nereid.spi.ModelRef;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/**
 * ResNet-18 as TorchScript, one request after another through the engine, beside a plain loop of libtorch with as many threads: with one, with
 * two, and without a configured number. The two alternate round by round. Needs libtorch, which the build has with {@code -Ppytorch}. Stateless.
 */
public final class TorchScriptScenario implements Scenario {
    private static final String LIBRARY = "/pytorch/cpu/linux-x86_64/libtorch_cpu.so";
    private static final int SIDE = TorchScriptLoop.SIDE;
    private static final int ROUNDS = 9;
    private static final int RUNS = 20;
    private static final double MAX_RATIO = 1.05;
    /** Answers may differ by this part of a value. */
    private static final double TOLERANCE = 1e-3;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException {
        Path file = setting.root().resolve("testing/bench/target/resnet18.pt");
        if (TorchScriptScenario.class.getResource(LIBRARY) == null) {
            return skipped(
                    setting, "libtorch is missing; ./mvnw -Pquick,pytorch -DskipTests -pl testing/bench -am package");
        }
        if (!Files.isRegularFile(file)) {
            return skipped(setting, file + " is missing; python3 testing/bench/make_resnet.py makes it");
        }
        List<BenchmarkResult> table = new ArrayList<>();
        for (int threads = 1; threads <= 2; threads++) {
            String parameter =
                    "parameters { key: \"INTRA_OP_THREAD_COUNT\" value { string_value: \"" + threads + "\" } }\n";
            table.add(compare(
                    "resnet_" + threads,
                    threads + " thread" + (threads > 1 ? "s" : ""),
                    file,
                    parameter,
                    threads,
                    setting));
        }
        table.add(compare("resnet_by_load", "threads by load, beside a loop with 2", file, "", 2, setting));
        return table;
    }

    private static List<BenchmarkResult> skipped(BenchmarkSettings setting, String missing) {
        setting.log("SKIPPED: %s", missing);
        return List.of(BenchmarkResult.skipped("torchscript", missing));
    }

    private static BenchmarkResult compare(
            String name, String what, Path file, String config, int threads, BenchmarkSettings setting)
            throws IOException {
        Path repository = setting.directory(name);
        EmbeddedEngine.write(repository, name, config);
        Files.copy(file, repository.resolve(name + "/1/model.pt"));
        double[] plain = new double[ROUNDS];
        double[] own = new double[ROUNDS];
        double[] ratios = new double[ROUNDS];
        double differ = 0;
        float[] pixels = TorchScriptLoop.pixels();
        try (TorchScriptLoop loop = new TorchScriptLoop(file, threads);
                EmbeddedEngine engine = EmbeddedEngine.of(repository)) {
            for (int round = -3; round < ROUNDS; round++) {
                RoundResult beside = loop.round(RUNS);
                double[] millis = new double[RUNS];
                for (int i = 0; i < RUNS; i++) {
                    long begun = System.nanoTime();
                    float first = answer(engine, name, pixels);
                    millis[i] = (System.nanoTime() - begun) / 1e6;
                    differ = Math.max(differ, Math.abs(first / beside.first() - 1));
                }
                if (round >= 0) {
                    plain[round] = beside.millis();
                    own[round] = BenchmarkResult.median(millis);
                    ratios[round] = own[round] / plain[round];
                }
            }
        }
        setting.log(
                "%s: %s, plain loop %s, ratio %s",
                what,
                BenchmarkResult.spread(own, "ms"),
                BenchmarkResult.spread(plain, "ms"),
                BenchmarkResult.spread(ratios, "x"));
        return new BenchmarkResult(
                "ResNet-18 as TorchScript, " + what,
                BenchmarkResult.spread(plain, "ms a picture, plain loop"),
                BenchmarkResult.spread(own, "ms a picture"),
                BenchmarkResult.spread(ratios, ""),
                String.format(Locale.ROOT, "answers differ by %.1e", differ),
                "<= 1.05 x the loop",
                BenchmarkResult.verdict(BenchmarkResult.median(ratios) <= MAX_RATIO && differ <= TOLERANCE));
    }

    private static float answer(EmbeddedEngine engine, String model, float[] pixels) {
        Tensor input = Tensor.allocate("image", DataType.FP32, Shape.of(1, 3, SIDE, SIDE));
        input.buffer().asFloatBuffer().put(pixels);
        List<Tensor> outputs = engine.ask(ModelRef.latest(model), List.of(input));
        float first = outputs.get(0).buffer().getFloat(0);
        Tensor.closeAll(outputs);
        return first;
    }
}
