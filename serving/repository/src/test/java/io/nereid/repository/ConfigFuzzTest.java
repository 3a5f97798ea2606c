// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

class ConfigFuzzTest {
    private static final String SEED_TEXT = """
            name: "m" platform: "onnxruntime_onnx" max_batch_size: 8 # comment
            input [ { name: "a" data_type: TYPE_FP32 dims: [ 3, -1 ] }, { name: 'b' data_type: 13 dims: 1 } ]
            output < name: "c\\n\\x41" "d", data_type: TYPE_INT64; dims: 4 label_filename: "l" >
            dynamic_batching { preferred_batch_size: [ 4, 2 ] default_queue_policy { max_queue_size: 0x10 } }
            parameters { key: "k" value: { string_value: "v" } } version_policy { specific { versions: [ 1, 2 ] } }
            model_warmup { name: "w" inputs { key: "a" value { data_type: TYPE_FP32 dims: 3 zero_data: true } } }
            sequence_batching { direct { minimum_slot_utilization: 1.5e-3f } } instance_group { count: 2 }
            """;
    private static final String SIGNS = "{}<>[]:,;-./\"'\\#\n \u0000\uD800é0x9eE_";

    @TempDir
    Path model;

    @Test
    void noMutationOfAConfigurationDoesMoreThanGiveProblems() {
        int cases = Integer.getInteger("nereid.fuzz.cases", 40_000);
        Random random = new Random(20_261_121);
        assertTimeoutPreemptively(Duration.ofMinutes(2), () -> {
            int wrong = 0;
            for (int i = 0; i < cases; i++) {
                String text = mutate(random);
                Problems problems = new Problems();
                try {
                    var result = ConfigReader.read(model.resolve("config.pbtxt"), text, model, "m", true, problems);
                    assertThat(result.config().name()).isEqualTo("m");
                } catch (RuntimeException | StackOverflowError e) {
                    throw new AssertionError("case " + i + ": " + text, e);
                }
                for (Problem p : problems.list()) {
                    assertThat(p.message()).isNotBlank().hasSizeLessThan(1_000);
                }
                wrong += problems.hasErrors() ? 1 : 0;
            }
            assertThat(wrong).isGreaterThan(cases / 2);
        });
    }

    private static String mutate(Random random) {
        StringBuilder text = new StringBuilder(SEED_TEXT);
        int edits = 1 + random.nextInt(6);
        for (int e = 0; e < edits && text.length() > 0; e++) {
            int at = random.nextInt(text.length());
            int length = Math.min(text.length() - at, 1 + random.nextInt(random.nextInt(10) == 0 ? 200 : 8));
            switch (random.nextInt(6)) {
                case 0 -> text.delete(at, at + length);
                case 1 -> text.insert(at, text.substring(at, at + length));
                case 2 -> text.setCharAt(at, SIGNS.charAt(random.nextInt(SIGNS.length())));
                case 3 -> text.insert(at, SIGNS.charAt(random.nextInt(SIGNS.length())));
                case 4 -> {
                    int from = random.nextInt(text.length());
                    text.insert(at, text.substring(from, Math.min(text.length(), from + length)));
                }
                default -> text.setCharAt(at, (char) random.nextInt(0x250));
            }
        }
        return text.toString();
    }

    @Test
    void longTokensAndManyFieldsTakeLinearTime() {
        assertTimeoutPreemptively(Duration.ofSeconds(20), () -> {
            for (String text : new String[] {
                "a".repeat(1 << 20),
                "a".repeat(1 << 20) + ": 1",
                "name: \"" + "x".repeat(1 << 20) + "\"",
                "name: " + "'x'".repeat(1 << 18),
                "max_batch_size: " + "9".repeat(1 << 20),
                "input {} ".repeat(1 << 17),
                "input { dims: [" + "1,".repeat(1 << 18) + "1] }",
                "parameters { key: 'k' } ".repeat(1 << 15),
                "[".repeat(1 << 20),
                "input [".repeat(1 << 17),
                "data_type: " + "Z".repeat(1 << 20),
                "input { data_type: " + "Z".repeat(1 << 20) + " }",
            }) {
                Problems problems = new Problems();
                ConfigReader.read(model.resolve("config.pbtxt"), text, model, "m", true, problems);
            }
        });
    }
}
