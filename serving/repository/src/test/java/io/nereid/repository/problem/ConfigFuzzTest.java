// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.repository.problem;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;

import io.nereid.repository.Fakes;
import io.nereid.repository.PrettyJson;
import io.nereid.repository.config.GpuInventory;
import io.nereid.repository.config.ModelConfigDocument;
import io.nereid.repository.config.ModelConfigReader;
import io.nereid.spi.config.ModelConfig;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

public class ConfigFuzzTest {
    private static final String MODEL_TEXT = """
        name: "m" platform: "onnxruntime_onnx" max_batch_size: 8 # comment
        input [ { name: "a" data_type: TYPE_FP32 dims: [ 3, -1 ] reshape { shape: [ 3, -1 ] } },
          { name: 'b' data_type: 13 dims: 1 allow_ragged_batch: true optional: true } ]
        output < name: "c\\n\\x41" "d", data_type: TYPE_INT64; dims: 4 label_filename: "l" >
        output { name: "o" data_type: TYPE_BF16 dims: [ 1, 1 ] reshape { shape: 1 } }
        batch_input { kind: BATCH_ITEM_SHAPE target_name: "n" data_type: TYPE_INT32 source_input: "a" }
        batch_output { target_name: "o" source_input: "b" }
        dynamic_batching { preferred_batch_size: [ 4, 2 ] default_queue_policy { max_queue_size: 0x10 }
          priority_levels: 2 default_priority_level: 1
          priority_queue_policy { key: 2 value { timeout_action: DELAY default_timeout_microseconds: 7 } } }
        parameters { key: "k" value: { string_value: "v" } } version_policy { specific { versions: [ 1, 2 ] } }
        model_warmup { name: "w" inputs { key: "a" value { data_type: TYPE_FP32 dims: 3 zero_data: true } } }
        instance_group [ { count: 2 kind: KIND_CPU }, { passive: true host_policy: "h" gpus: [ ]
          rate_limiter { resources { name: "R" global: true count: 2 } priority: 3 } } ]
        optimization { graph { level: 1 } execution_accelerators { cpu_execution_accelerator { name: "x" } } }
        model_metrics { metric_control { metric_identifier { family: "nv_inference_first_response_histogram_ms" } histogram_options { buckets: [ 1, 2 ] } } }
        metric_tags { key: "t" value: "u" } response_cache { enable: true }
        """;
    private static final String SEQUENCE_TEXT = """
        max_batch_size: 4
        sequence_batching { direct { minimum_slot_utilization: 1.5e-1f } max_sequence_idle_microseconds: 9
          control_input { name: "s" control { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } }
          control_input { name: "i" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_STRING } }
          state { input_name: "x" output_name: "y" data_type: TYPE_FP32 dims: [ 2, -1 ]
            initial_state { name: "z" data_type: TYPE_FP32 dims: [ 2, 1 ] data_file: "f" } } }
        """;
    private static final String ENSEMBLE_TEXT = """
        platform: "ensemble" input { name: "a" data_type: TYPE_FP32 dims: 1 }
        output { name: "b" data_type: TYPE_FP32 dims: 1 }
        ensemble_scheduling { max_inflight_requests: 4 step [
          { model_name: "p" model_version: -1 input_map { key: "x" value: "a" }
            output_map { key: "y" value: "c" } output_map { key: "z" value: "w" } },
          { model_name: "q" when: "w" input_map { key: "x" value: "c" } output_map { key: "y" value: "b" } } ] }
        """;
    private static final String JSON_TEXT = """
        { "name": "m", "maxBatchSize": 8.0, "input": [ { "name": "a", "data_type": 11, "dims": [ "3", -1 ] } ],
          "version_policy": { "specific": { "versions": [ 1, "2" ] } }, "parameters": { "k": { "string_value": "v" } },
          "dynamic_batching": { "priority_levels": 2, "default_priority_level": 1e0, "preserve_ordering": false,
            "priority_queue_policy": { "1": { "timeout_action": "delay" } }, "zzz": [ { "x": null } ] },
          "model_metrics": { "metric_control": [ { "metric_identifier": { "family": "nv_inference_first_response_histogram\\u005fms" },
            "histogram_options": { "buckets": [ "-Infinity", 1.5, 2e3 ] } } ] },
          "optimization": null, "instance_group": [ { "count": 2, "kind": "KIND_CPU", "gpus": [ ] } ] }
        """;
    private static final List<String> SEEDS = List.of(MODEL_TEXT, SEQUENCE_TEXT, ENSEMBLE_TEXT, JSON_TEXT);
    private static final String SIGNS = "{}<>[]:,;-./\"'\\#\n \u0000\uD800é0x9eE_";

    @TempDir
    Path model;

    @Test
    void noMutationOfAConfigurationDoesMoreThanGiveProblems() {
        int cases = Integer.getInteger("nereid.fuzz.cases", 20_000);
        Random random = new Random(20_261_121);
        files();
        assertTimeoutPreemptively(Duration.ofMinutes(2), () -> {
            int wrong = 0;
            for (int i = 0; i < cases; i++) {
                String seed = SEEDS.get(i % SEEDS.size());
                String text = mutate(seed, random);
                ProblemCollector problems = new ProblemCollector();
                try {
                    ModelConfig config = read(seed, text, problems);
                    assertThat(config.name()).isEqualTo("m");
                    if (!problems.hasErrors()) {
                        agree(config);
                    }
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

    /** Creates the files that the seeds refer to. */
    private void files() {
        Fakes.write(model.resolve("l"), "x");
        Fakes.write(model.resolve("initial_state/f"), "12345678");
    }

    private ModelConfig read(String seed, String text, ProblemCollector problems) {
        Path file = model.resolve("config");
        return seed.equals(JSON_TEXT)
                ? ModelConfigReader.readJson(file, text, model, "m", true, problems)
                        .config()
                : ModelConfigReader.read(file, text, model, "m", true, problems).config();
    }

    /** Each accepted configuration can be shown, and has the same meaning when it is read again. */
    private void agree(ModelConfig read) {
        // Sizes beyond the maximum batch size cannot be detected before the backend has set that maximum.
        ModelConfig config =
                read.maxBatchSize() < 0 ? read.toBuilder().maxBatchSize(1 << 30).build() : read;
        Map<String, Object> document = ModelConfigDocument.of(config);
        ProblemCollector problems = new ProblemCollector();
        ModelConfig again = ModelConfigReader.readJson(
                        model.resolve("again"), PrettyJson.of(document), model, "m", true, problems)
                .config();
        assertThat(problems.list()).noneMatch(Problem::isError);
        assertThat(ModelConfigDocument.of(again)).isEqualTo(document);
        ModelConfigDocument.check(config, model, GpuInventory.NONE);
    }

    @Test
    void theSeedsAreWithoutFault() {
        files();
        for (String seed : SEEDS) {
            ProblemCollector problems = new ProblemCollector();
            read(seed, seed, problems);
            assertThat(problems.list())
                    .filteredOn(p -> !p.message().contains("'zzz'"))
                    .isEmpty();
        }
    }

    public static String mutate(String seed, Random random) {
        StringBuilder text = new StringBuilder(seed);
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
                read(MODEL_TEXT, text, new ProblemCollector());
            }
        });
    }

    @Test
    void longJsonTakesLinearTime() {
        assertTimeoutPreemptively(Duration.ofSeconds(20), () -> {
            for (String text : new String[] {
                "[".repeat(1 << 20),
                "{\"input\":[".repeat(1 << 17),
                "{\"max_batch_size\":" + "9".repeat(1 << 20) + "}",
                "{\"max_batch_size\":\"" + "9".repeat(1 << 20) + "\"}",
                "{\"" + "x".repeat(1 << 20) + "\":1}",
                "{" + "\"zzz\":1,".repeat(1 << 17) + "\"name\":\"m\"}",
                "{\"input\":[" + "{},".repeat(1 << 18) + "{}]}",
                "{\"parameters\":{" + "\"k\":{},".repeat(1 << 17) + "\"k\":{}}}",
                "{\"dynamic_batching\":{\"max_queue_delay_microseconds\":1e" + "9".repeat(300) + "}}",
                "{\"dynamic_batching\":{\"max_queue_delay_microseconds\":0e" + "9".repeat(9) + "}}",
            }) {
                read(JSON_TEXT, text, new ProblemCollector());
            }
        });
    }

    @Test
    void anEnsembleOfManyTensorsTakesLinearTime() {
        StringBuilder text = new StringBuilder("platform: 'ensemble' ");
        for (int i = 0; i < 2_000; i++) {
            text.append("input{name:'i").append(i).append("' data_type:TYPE_FP32 dims:1} ");
            text.append("output{name:'o").append(i).append("' data_type:TYPE_FP32 dims:1} ");
        }
        text.append("ensemble_scheduling{step{model_name:'n' ");
        for (int i = 0; i < 2_000; i++) {
            text.append("input_map{key:'i")
                    .append(i)
                    .append("' value:'i")
                    .append(i)
                    .append("'} ");
            text.append("output_map{key:'o")
                    .append(i)
                    .append("' value:'o")
                    .append(i)
                    .append("'} ");
        }
        text.append("}}");
        ProblemCollector problems = new ProblemCollector();
        ModelConfig config = read(ENSEMBLE_TEXT, text.toString(), problems);
        assertThat(problems.list()).isEmpty();
        assertTimeoutPreemptively(Duration.ofSeconds(20), () -> agree(config));
    }
}
