// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench;

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
 * One identity request of 16 floats after another, in process: the engine against Triton's core, as {@code testing/oracle}
 * times it. Where the oracle is not built, against what it took on a quiet machine. Has no state.
 */
final class EngineRow implements Bench.Row {
    /** Microseconds a request through Triton's core 2.51, on a quiet machine like the one of the table. */
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
    public List<Figure> measure(Bench.Setting setting) throws IOException, InterruptedException {
        double[] core = core(setting);
        double[] ours = ours(setting);
        double quiet = core.length == 0 ? QUIET : Math.min(QUIET, Figure.median(core));
        double mine = Figure.median(ours);
        return List.of(new Figure(
                "identity request in process, 16 floats, one after another",
                core.length == 0
                        ? "Triton's core NOT MEASURED (testing/oracle is not built); 9.90 us on a quiet machine"
                        : Figure.spread(core, "us, Triton's core"),
                Figure.spread(ours, "us"),
                String.format(Locale.ROOT, "%.3f", mine / (core.length == 0 ? QUIET : Figure.median(core))),
                String.format(
                        Locale.ROOT,
                        "%.3f of the 9.9 us of a quiet machine; %.2f M requests/s of one thread",
                        mine / QUIET,
                        1 / mine),
                "<= 1/3 of both",
                Figure.verdict(mine <= quiet * MAX_SHARE)));
    }

    private static double[] ours(Bench.Setting setting) throws IOException {
        Path repository = setting.directory("engine-ours");
        InProcess.write(
                repository,
                "identity",
                "backend: \"java\"\nparameters { key: \"model\" value { string_value: \"identity\" } }\n" + CONFIG);
        double[] micros = new double[ROUNDS];
        MemoryRegion data = MemoryRegion.allocate(64).zero();
        try (InProcess engine = InProcess.of(repository)) {
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
        setting.say("nereid %s a request", Figure.spread(micros, "us"));
        return micros;
    }

    private static void run(InProcess engine, ModelRef model, MemoryRegion data, int requests) {
        for (int i = 0; i < requests; i++) {
            Tensor input = Tensor.over("INPUT0", DataType.FP32, SHAPE, data.retain(), 0, 64);
            Tensor.closeAll(engine.ask(model, List.of(input)));
        }
    }

    /** What each round of the oracle took; nothing when there is none. */
    private static double[] core(Bench.Setting setting) throws IOException, InterruptedException {
        Path oracle = setting.root().resolve("testing/oracle/target/oracle");
        Path backends = setting.root().resolve("testing/oracle/target/backends");
        if (!Files.isExecutable(oracle)) {
            setting.say("SKIPPED: Triton's core, as testing/oracle/build.sh has not been run");
            return new double[0];
        }
        Path repository = setting.directory("engine-core");
        InProcess.write(repository, "identity", "backend: \"identity\"\n" + CONFIG);
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
            setting.say(
                    "SKIPPED: Triton's core, which said: %s",
                    Files.readString(setting.scratch().resolve("oracle.log")).strip());
        } else {
            setting.say("Triton's core %s a request", Figure.spread(micros, "us"));
        }
        return micros;
    }
}
