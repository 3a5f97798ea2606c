// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.scenario;

import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.EmbeddedEngine;
import io.nereid.embedded.Model;
import io.nereid.embedded.Nereid;
import io.nereid.spi.ModelRef;
import io.nereid.tensor.DataType;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/**
 * A no-op model asked through the facade {@code nereid-embedded} with a {@code float[][]}, whose result is read as floats,
 * compared with the same request on the engine's interface, whose caller fills a tensor and reads one. The two alternate;
 * the result is the median of the rounds' differences. Stateless.
 */
public final class EmbeddedScenario implements Scenario {
    private static final double MAX_MICROS = 1;
    private static final int ROUNDS = 15;
    private static final int REQUESTS = 20_000;
    private static final int WARMUP = 300_000;
    private static final Shape SHAPE = Shape.of(1, 16);

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException {
        Path repository = setting.directory("embedded");
        EmbeddedEngine.write(repository, "identity", """
            backend: "identity"
            max_batch_size: 8
            parameters { key: "response_parameters" value { string_value: "false" } }
            input [ { name: "x" data_type: TYPE_FP32 dims: [ 16 ] } ]
            output [ { name: "y" data_type: TYPE_FP32 dims: [ 16 ] } ]
            """);
        float[][] row = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}};
        double[] direct = new double[ROUNDS];
        double[] facade = new double[ROUNDS];
        double[] differences = new double[ROUNDS];
        float[] sink = new float[16];
        try (EmbeddedEngine engine = EmbeddedEngine.of(repository);
                Nereid nereid = Nereid.builder().repository(repository).build()) {
            ModelRef ref = ModelRef.latest("identity");
            Model model = nereid.model("identity");
            double unused = engine(engine, ref, row, sink, WARMUP) + facade(model, row, sink, WARMUP);
            for (int round = 0; round < ROUNDS; round++) {
                direct[round] = engine(engine, ref, row, sink, REQUESTS);
                facade[round] = facade(model, row, sink, REQUESTS);
                differences[round] = facade[round] - direct[round];
            }
        }
        double more = BenchmarkResult.median(differences);
        setting.log(
                "facade %s, engine %s, difference %s",
                BenchmarkResult.spread(facade, "us"),
                BenchmarkResult.spread(direct, "us"),
                BenchmarkResult.spread(differences, "us"));
        return List.of(new BenchmarkResult(
                "identity request in process, 16 floats: the facade or the engine's interface",
                BenchmarkResult.spread(direct, "us, the engine"),
                BenchmarkResult.spread(facade, "us, the facade"),
                String.format(Locale.ROOT, "%.3f", BenchmarkResult.median(facade) / BenchmarkResult.median(direct)),
                String.format(Locale.ROOT, "%+.3f us", more),
                "<= 1 us more",
                BenchmarkResult.verdict(more <= MAX_MICROS)));
    }

    /** Microseconds for each request on the engine's interface. */
    private static double engine(EmbeddedEngine engine, ModelRef ref, float[][] row, float[] to, int requests) {
        long from = System.nanoTime();
        for (int i = 0; i < requests; i++) {
            Tensor input = Tensor.allocate("x", DataType.FP32, SHAPE);
            input.buffer().asFloatBuffer().put(row[0]);
            List<Tensor> outputs = engine.ask(ref, List.of(input));
            outputs.get(0).buffer().asFloatBuffer().get(to);
            Tensor.closeAll(outputs);
        }
        return (System.nanoTime() - from) / 1e3 / requests;
    }

    /** Microseconds for each request through the facade. */
    private static double facade(Model model, float[][] row, float[] to, int requests) {
        long from = System.nanoTime();
        for (int i = 0; i < requests; i++) {
            float[] values = model.predict(row).floats();
            System.arraycopy(values, 0, to, 0, to.length);
        }
        return (System.nanoTime() - from) / 1e3 / requests;
    }
}
