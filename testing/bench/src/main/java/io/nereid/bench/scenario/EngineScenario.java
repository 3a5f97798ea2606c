// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.EmbeddedEngine;
import io.nereid.spi.ModelRef;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;

/**
 * Sequential identity requests of 16 floats, in process: the engine, compared with Triton's core as {@code
 * testing/oracle} measures it. Without a built oracle, compared with a recorded time of a quiet machine. Stateless.
 */
public final class EngineScenario implements Scenario {
    /**
     * Microseconds per request through Triton's core 2.51, recorded on a quiet machine like that of the published
     * table.
     */
    private static final double QUIET = 9.9;

    private static final double MAX_SHARE = 1.0 / 3;
    private static final int ROUNDS = 8;
    private static final int REQUESTS = 5000;
    private static final int WARMUP = 400_000;
    private static final String CONFIG = """
        max_batch_size: 8
        input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 16 ] } ]
        output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 16 ] } ]
        """;
    private static final Shape SHAPE = Shape.of(1, 16);
    private static final Pattern LINE = Pattern.compile("(?m)^identity ([0-9.]+) us$");

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException, InterruptedException {
        double[] core = core(setting);
        double[] ours = ours(setting);
        double quiet = core.length == 0 ? QUIET : Math.min(QUIET, BenchmarkResult.median(core));
        double mine = BenchmarkResult.median(ours);
        return List.of(new BenchmarkResult(
                "identity request in process, 16 floats, one after another",
                core.length == 0
                        ? "Triton's core NOT MEASURED (testing/oracle is not built); 9.90 us on a quiet machine"
                        : BenchmarkResult.spread(core, "us, Triton's core"),
                BenchmarkResult.spread(ours, "us"),
                String.format(Locale.ROOT, "%.3f", mine / (core.length == 0 ? QUIET : BenchmarkResult.median(core))),
                String.format(
                        Locale.ROOT,
                        "%.3f of the 9.9 us of a quiet machine; %.2f M requests/s of one thread",
                        mine / QUIET,
                        1 / mine),
                "<= 1/3 of both",
                BenchmarkResult.verdict(mine <= quiet * MAX_SHARE)));
    }

    private static double[] ours(BenchmarkSettings setting) throws IOException {
        Path repository = setting.directory("engine-ours");
        EmbeddedEngine.write(
                repository,
                "identity",
                "backend: \"identity\"\n"
                        + "parameters { key: \"response_parameters\" value { string_value: \"false\" } }\n" + CONFIG);
        double[] micros = new double[ROUNDS];
        MemoryRegion data = MemoryRegion.allocate(64).zero();
        try (EmbeddedEngine engine = EmbeddedEngine.of(repository)) {
            ModelRef model = ModelRef.latest("identity");
            run(engine, model, data, WARMUP);
            for (int round = 0; round < ROUNDS; round++) {
                long from = System.nanoTime();
                run(engine, model, data, REQUESTS);
                micros[round] = (System.nanoTime() - from) / 1e3 / REQUESTS;
            }
        } finally {
            data.release();
        }
        setting.log("nereid %s a request", BenchmarkResult.spread(micros, "us"));
        return micros;
    }

    private static void run(EmbeddedEngine engine, ModelRef model, MemoryRegion data, int requests) {
        for (int i = 0; i < requests; i++) {
            Tensor input = Tensor.over("INPUT0", DataType.FP32, SHAPE, data.retain(), 0, 64);
            Tensor.closeAll(engine.ask(model, List.of(input)));
        }
    }

    /** Returns the oracle's time in each round; empty without an oracle. */
    private static double[] core(BenchmarkSettings setting) throws IOException, InterruptedException {
        Path oracle = setting.root().resolve("testing/oracle/target/oracle");
        Path backends = setting.root().resolve("testing/oracle/target/backends");
        if (!Files.isExecutable(oracle)) {
            setting.log("SKIPPED: Triton's core, as testing/oracle/build.sh has not been run");
            return new double[0];
        }
        Path repository = setting.directory("engine-core");
        EmbeddedEngine.write(repository, "identity", "backend: \"identity\"\n" + CONFIG);
        Process process = new ProcessBuilder(oracle.toString(), repository.toString(), backends.toString(), "identity")
                .redirectError(setting.scratch().resolve("oracle.log").toFile())
                .start();
        String text = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        if (!process.waitFor(1, TimeUnit.MINUTES)) {
            process.destroyForcibly();
        }
        double[] micros = LINE.matcher(text)
                .results()
                .mapToDouble(line -> Double.parseDouble(line.group(1)))
                .toArray();
        if (micros.length == 0) {
            setting.log(
                    "SKIPPED: Triton's core, with the output: %s",
                    Files.readString(setting.scratch().resolve("oracle.log")).strip());
        } else {
            setting.log("Triton's core %s a request", BenchmarkResult.spread(micros, "us"));
        }
        return micros;
    }
}
