// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.bench.encoder;

import ai.onnxruntime.OnnxTensor;
import ai.onnxruntime.OrtEnvironment;
import ai.onnxruntime.OrtException;
import ai.onnxruntime.OrtSession;
import io.nereid.bench.harness.BenchmarkResult;
import io.nereid.bench.harness.BenchmarkSettings;
import io.nereid.bench.harness.EmbeddedEngine;
import io.nereid.bench.scenario.Scenario;
import io.nereid.spi.ModelRef;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.io.IOException;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * Loads, and texts per second, of an encoder that is served from its Hugging Face folder, tokenised and pooled, beside a plain loop of ONNX Runtime over
 * prepared tokens with what {@code torch.onnx.export} makes of the same model. Both have one thread, and alternate round by round. Stateless.
 */
public final class HuggingFaceScenario implements Scenario {
    private static final int ROUNDS = 9;
    private static final int[] BATCHES = {1, 16};
    private static final int[] LENGTHS = {16, 128};
    private static final int TOKENS_IN_ROUND = 4096;
    private static final int MARKS = 2;
    private static final int FIRST_WORD = 5;
    private static final double MIN_RATIO = 0.95;
    private static final int LOADS = 9;
    private static final double MAX_LOAD = 1.3;

    @Override
    public List<BenchmarkResult> measure(BenchmarkSettings setting) throws IOException {
        Path folder = setting.root().resolve("testing/bench/target/encoder");
        Path exported = folder.resolve("onnx/model.onnx");
        if (!Files.isRegularFile(exported)) {
            String missing = exported + " is missing; testing/bench/make_encoder.py makes it";
            setting.log("SKIPPED: %s", missing);
            return List.of(BenchmarkResult.skipped("huggingface", missing));
        }
        Path repository = setting.directory("huggingface");
        EmbeddedEngine.write(repository, "encoder", """
                backend: "huggingface"
                max_batch_size: 16
                instance_group [{ count: 1 }]
                parameters { key: "intra_op_thread_count" value { string_value: "1" } }
                """);
        for (String name : List.of("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")) {
            Files.copy(folder.resolve(name), repository.resolve("encoder/1").resolve(name));
        }
        List<BenchmarkResult> table = new ArrayList<>();
        OrtEnvironment environment = OrtEnvironment.getEnvironment();
        try (OrtSession.SessionOptions options = new OrtSession.SessionOptions()) {
            options.setIntraOpNumThreads(1);
            options.setOptimizationLevel(OrtSession.SessionOptions.OptLevel.ALL_OPT);
            table.add(loads(setting, environment, options, exported, repository));
            try (OrtSession session = environment.createSession(exported.toString(), options)) {
                try (EmbeddedEngine engine = EmbeddedEngine.of(repository)) {
                    for (int batch : BATCHES) {
                        for (int length : LENGTHS) {
                            table.add(compare(setting, environment, session, engine, batch, length));
                        }
                    }
                }
            }
        } catch (OrtException e) {
            throw new IOException("the plain loop failed: " + e.getMessage(), e);
        }
        return table;
    }

    /**
     * Compares the time to load. The first load of each is left out: it unpacks and links ONNX Runtime and the tokenizers library, and
     * runs code that is not compiled yet, which a server does once.
     */
    private static BenchmarkResult loads(
            BenchmarkSettings setting,
            OrtEnvironment environment,
            OrtSession.SessionOptions options,
            Path exported,
            Path repository)
            throws OrtException, IOException {
        double[] plain = new double[LOADS];
        double[] own = new double[LOADS];
        double[] ratios = new double[LOADS];
        for (int round = -2; round < LOADS; round++) {
            long begun = System.nanoTime();
            environment.createSession(exported.toString(), options).close();
            long between = System.nanoTime();
            EmbeddedEngine.of(repository).close();
            long ended = System.nanoTime();
            if (round >= 0) {
                plain[round] = (between - begun) / 1e9;
                own[round] = (ended - between) / 1e9;
                ratios[round] = own[round] / plain[round];
            } else {
                setting.log("load %d before the measurement: %.2f s", round + 3, (ended - between) / 1e9);
            }
        }
        return new BenchmarkResult(
                "encoder from its folder, load",
                BenchmarkResult.spread(plain, "s, exported model"),
                BenchmarkResult.spread(own, "s, with the tokenizer and the start of an engine"),
                BenchmarkResult.spread(ratios, ""),
                "one thread",
                "<= 1.3 x the session",
                BenchmarkResult.verdict(BenchmarkResult.median(ratios) <= MAX_LOAD));
    }

    private static BenchmarkResult compare(
            BenchmarkSettings setting,
            OrtEnvironment environment,
            OrtSession session,
            EmbeddedEngine engine,
            int batch,
            int length)
            throws OrtException {
        double[] plain = new double[ROUNDS];
        double[] own = new double[ROUNDS];
        double[] ratios = new double[ROUNDS];
        int runs = Math.max(2, TOKENS_IN_ROUND / (batch * length));
        byte[][] texts = texts(batch, length);
        Map<String, OnnxTensor> inputs = new LinkedHashMap<>();
        try {
            for (String name : session.getInputNames()) {
                inputs.put(name, input(environment, name, batch, length));
            }
            for (int round = -2; round < ROUNDS; round++) {
                long begun = System.nanoTime();
                for (int i = 0; i < runs; i++) {
                    session.run(inputs).close();
                }
                long between = System.nanoTime();
                for (int i = 0; i < runs; i++) {
                    Tensor.closeAll(engine.ask(
                            ModelRef.latest("encoder"), List.of(Tensor.ofBytes("TEXT", Shape.of(batch, 1), texts))));
                }
                long ended = System.nanoTime();
                if (round >= 0) {
                    plain[round] = (double) runs * batch / ((between - begun) / 1e9);
                    own[round] = (double) runs * batch / ((ended - between) / 1e9);
                    ratios[round] = own[round] / plain[round];
                }
            }
        } finally {
            inputs.values().forEach(OnnxTensor::close);
        }
        String what = String.format(Locale.ROOT, "%d x %d tokens", batch, length);
        setting.log(
                "%s: %s, exported %s, ratio %s",
                what,
                BenchmarkResult.spread(own, "/s"),
                BenchmarkResult.spread(plain, "/s"),
                BenchmarkResult.spread(ratios, "x"));
        return new BenchmarkResult(
                "encoder from its folder, " + what,
                BenchmarkResult.spread(plain, "texts/s, exported model"),
                BenchmarkResult.spread(own, "texts/s"),
                BenchmarkResult.spread(ratios, ""),
                "one thread",
                ">= 0.95 x the loop",
                BenchmarkResult.verdict(BenchmarkResult.median(ratios) >= MIN_RATIO));
    }

    private static byte[][] texts(int batch, int length) {
        byte[][] texts = new byte[batch][];
        for (int i = 0; i < batch; i++) {
            StringBuilder text = new StringBuilder();
            for (int j = 0; j < length - MARKS; j++) {
                text.append('w').append(37 * (i * length + j) % 20_000).append(' ');
            }
            texts[i] = text.toString().getBytes(StandardCharsets.UTF_8);
        }
        return texts;
    }

    private static OnnxTensor input(OrtEnvironment environment, String name, int batch, int length)
            throws OrtException {
        LongBuffer values = LongBuffer.allocate(batch * length);
        for (int i = 0; i < batch * length; i++) {
            values.put(
                    i,
                    name.equals("input_ids") ? FIRST_WORD + 37L * i % 20_000 : name.equals("attention_mask") ? 1 : 0);
        }
        return OnnxTensor.createTensor(environment, values, new long[] {batch, length});
    }
}
