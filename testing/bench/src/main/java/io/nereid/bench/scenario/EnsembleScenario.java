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
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;

/**
 * An ensemble of three models, compared with three requests to its members, in process: with the sentence embedding of
 * the examples, and with no-op models, which leaves the overhead of the ensemble itself. The two alternate, so that
 * other load on the machine affects both; the result of a round is the median. Stateless.
 */
public final class EnsembleScenario implements Scenario {
    private static final double MAX_RATIO = 1.05;
    private static final int ROUNDS = 9;
    private static final long WARMUP_NANOS = 3_000_000_000L;
    private static final ModelRef TOKENIZER = ModelRef.latest("tokenizer");
    private static final ModelRef MINILM = ModelRef.latest("minilm");
    private static final ModelRef POOL = ModelRef.latest("pool");
    private static final ModelRef EMBEDDING = ModelRef.latest("sentence_embedding");
    private static final ModelRef[] PARTS = {
        ModelRef.latest("first"), ModelRef.latest("second"), ModelRef.latest("third")
    };
    private static final ModelRef WHOLE = ModelRef.latest("whole");
    private static final byte[] TEXT = "A pipeline of three models turns a sentence of ordinary length into one vector."
            .getBytes(StandardCharsets.UTF_8);

    /** Microseconds per request of the ensemble and of its members, by round. */
    private record Turns(double[] whole, double[] parts, double[] ratios, double[] differences) {}

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException {
        return List.of(embedding(setting), nothing(setting));
    }

    private static BenchmarkResult embedding(BenchmarkSettings setting) throws IOException {
        String work = "sentence embedding in process: the ensemble or its three models";
        for (String file : List.of("minilm/1/model.onnx", "tokenizer/1/tokenizer.json")) {
            if (!Files.exists(setting.examples().resolve(file))) {
                setting.log("SKIPPED: the build has not fetched %s", file);
                return BenchmarkResult.skipped(work, "the build has not fetched " + file);
            }
        }
        Path repository = setting.directory("ensemble-minilm");
        for (String model : List.of("tokenizer", "minilm", "pool", "sentence_embedding")) {
            StartupScenario.copy(setting.examples().resolve(model), repository.resolve(model));
        }
        byte[] element = ByteBuffer.allocate(4 + TEXT.length)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(TEXT.length)
                .put(TEXT)
                .array();
        MemoryRegion data = MemoryRegion.copyOf(element, 0, element.length);
        Shape shape = Shape.of(1, 1);
        Turns turns;
        try (EmbeddedEngine engine = EmbeddedEngine.of(repository)) {
            turns = turns(
                    () -> Tensor.closeAll(engine.ask(EMBEDDING, List.of(text(data, shape)))),
                    () -> {
                        List<Tensor> tokens = engine.ask(TOKENIZER, List.of(text(data, shape)));
                        Tensor mask = named(tokens, "attention_mask").retain();
                        List<Tensor> vectors = engine.ask(MINILM, tokens);
                        Tensor.closeAll(engine.ask(POOL, List.of(named(vectors, "last_hidden_state"), mask)));
                    },
                    1,
                    120);
        } finally {
            data.release();
        }
        double ratio = BenchmarkResult.median(turns.ratios);
        setting.log(
                "embedding: ensemble %.1f us, its models %.1f us, ratio of rounds %s",
                BenchmarkResult.median(turns.whole),
                BenchmarkResult.median(turns.parts),
                BenchmarkResult.spread(turns.ratios, ""));
        return new BenchmarkResult(
                work,
                BenchmarkResult.spread(turns.parts, "us, the models"),
                BenchmarkResult.spread(turns.whole, "us, the ensemble"),
                String.format(Locale.ROOT, "%.3f", ratio),
                String.format(Locale.ROOT, "%+.1f us", BenchmarkResult.median(turns.differences)),
                "<= 1.05 x the models",
                BenchmarkResult.verdict(ratio <= MAX_RATIO));
    }

    private static BenchmarkResult nothing(BenchmarkSettings setting) throws IOException {
        Path repository = setting.directory("ensemble-identity");
        for (ModelRef part : PARTS) {
            EmbeddedEngine.write(repository, part.model(), """
                backend: "identity"
                max_batch_size: 8
                parameters { key: "response_parameters" value { string_value: "false" } }
                input [ { name: "x" data_type: TYPE_FP32 dims: [ 16 ] } ]
                output [ { name: "y" data_type: TYPE_FP32 dims: [ 16 ] } ]
                """);
        }
        EmbeddedEngine.write(repository, WHOLE.model(), """
            platform: "ensemble"
            max_batch_size: 8
            input [ { name: "a" data_type: TYPE_FP32 dims: [ 16 ] } ]
            output [ { name: "d" data_type: TYPE_FP32 dims: [ 16 ] } ]
            ensemble_scheduling {
              step [
                { model_name: "first" model_version: -1
                  input_map { key: "x" value: "a" } output_map { key: "y" value: "b" } },
                { model_name: "second" model_version: -1
                  input_map { key: "x" value: "b" } output_map { key: "y" value: "c" } },
                { model_name: "third" model_version: -1
                  input_map { key: "x" value: "c" } output_map { key: "y" value: "d" } }
              ]
            }
            """);
        MemoryRegion data = MemoryRegion.allocate(64).zero();
        Shape shape = Shape.of(1, 16);
        Turns turns;
        try (EmbeddedEngine engine = EmbeddedEngine.of(repository)) {
            turns = turns(
                    () -> Tensor.closeAll(
                            engine.ask(WHOLE, List.of(Tensor.over("a", DataType.FP32, shape, data.retain(), 0, 64)))),
                    () -> {
                        Tensor tensor = Tensor.over("x", DataType.FP32, shape, data.retain(), 0, 64);
                        for (ModelRef part : PARTS) {
                            tensor = engine.ask(part, List.of(tensor)).get(0);
                            Tensor next = tensor.retainAs("x", shape);
                            tensor.close();
                            tensor = next;
                        }
                        tensor.close();
                    },
                    50,
                    2000);
        } finally {
            data.release();
        }
        setting.log(
                "nothing: ensemble %.2f us, its models %.2f us",
                BenchmarkResult.median(turns.whole), BenchmarkResult.median(turns.parts));
        return new BenchmarkResult(
                "the same with three models that do nothing",
                BenchmarkResult.spread(turns.parts, "us, the models"),
                BenchmarkResult.spread(turns.whole, "us, the ensemble"),
                String.format(Locale.ROOT, "%.2f", BenchmarkResult.median(turns.ratios)),
                String.format(Locale.ROOT, "%+.2f us", BenchmarkResult.median(turns.differences)),
                "",
                "-");
    }

    private static Tensor text(MemoryRegion data, Shape shape) {
        return Tensor.over("TEXT", DataType.BYTES, shape, data.retain(), 0, data.size());
    }

    private static Tensor named(List<Tensor> tensors, String name) {
        return tensors.stream().filter(t -> t.name().equals(name)).findFirst().orElseThrow();
    }

    /** Returns the medians of each round; within a round the two alternate, {@code requests} at a time. */
    private static Turns turns(Runnable whole, Runnable parts, int requests, int each) {
        long due = System.nanoTime() + WARMUP_NANOS;
        while (System.nanoTime() - due < 0) {
            turn(whole, requests);
            turn(parts, requests);
        }
        double[] ours = new double[ROUNDS];
        double[] theirs = new double[ROUNDS];
        double[] ratios = new double[ROUNDS];
        double[] differences = new double[ROUNDS];
        for (int round = 0; round < ROUNDS; round++) {
            double[] our = new double[each];
            double[] their = new double[each];
            for (int i = 0; i < each; i++) {
                if (i % 2 == 0) {
                    our[i] = turn(whole, requests);
                    their[i] = turn(parts, requests);
                } else {
                    their[i] = turn(parts, requests);
                    our[i] = turn(whole, requests);
                }
            }
            ours[round] = BenchmarkResult.median(our);
            theirs[round] = BenchmarkResult.median(their);
            ratios[round] = ours[round] / theirs[round];
            differences[round] = ours[round] - theirs[round];
        }
        return new Turns(ours, theirs, ratios, differences);
    }

    /** Returns microseconds per request. */
    private static double turn(Runnable request, int requests) {
        long from = System.nanoTime();
        for (int i = 0; i < requests; i++) {
            request.run();
        }
        return (System.nanoTime() - from) / 1e3 / requests;
    }
}
