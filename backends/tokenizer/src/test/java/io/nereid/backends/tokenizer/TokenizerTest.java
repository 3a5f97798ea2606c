// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tokenizer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import io.nereid.backend.BackendContext;
import io.nereid.backend.BackendModel;
import io.nereid.backend.ModelInstance;
import io.nereid.backend.ModelLocation;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.spi.ServableId;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.TensorSpec;
import io.nereid.tensor.DataType;
import io.nereid.tensor.MemoryRegion;
import io.nereid.tensor.Shape;
import io.nereid.tensor.Tensor;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Assumptions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TokenizerTest {
    private static final ModelConfig OPEN = ModelConfig.unspecified("words");

    @TempDir
    Path root;

    private BackendModel load(ModelConfig config, String json) {
        return Texts.BACKEND.load(Texts.source(root, "words", json), config, new BackendContext(2, root, Map.of()));
    }

    private BackendModel load(Map<String, String> parameters) {
        return load(OPEN.toBuilder().parameters(parameters).build(), Texts.json());
    }

    private static List<List<List<Long>>> run(BackendModel model, Tensor... inputs) {
        List<String> wanted =
                model.config().outputs().stream().map(TensorSpec::name).toList();
        try (ModelInstance invocation = model.newInstance()) {
            List<Tensor> outputs = invocation.run(List.of(inputs), wanted);
            List<List<List<Long>>> result = new ArrayList<>();
            outputs.forEach(t -> result.add(Texts.rows(t)));
            Tensor.closeAll(outputs);
            return result;
        } finally {
            Tensor.closeAll(List.of(inputs));
        }
    }

    private static List<List<List<Long>>> run(BackendModel model, String... texts) {
        return run(model, Texts.texts("TEXT", Shape.of(texts.length, 1), texts));
    }

    @Test
    void whatIsLeftOpenIsFilledIn() {
        try (BackendModel model = load(Map.of())) {
            ModelConfig c = model.config();
            assertThat(c.inputs()).containsExactly(new TensorSpec("TEXT", DataType.BYTES, Shape.of(1)));
            assertThat(c.outputs())
                    .extracting(s -> s.name() + s.dataType() + s.shape())
                    .containsExactly("input_idsINT64[-1]", "attention_maskINT64[-1]", "token_type_idsINT64[-1]");
            assertThat(c.maxBatchSize()).isEqualTo(64);
            assertThat(c.batching()).isNull();
            assertThat(c.instances()).isEqualTo(2);
            assertThat(c.platform()).isEqualTo("tokenizer");
            assertThat(model.memoryBytes()).isPositive();
        }
        ModelLocation source = Texts.source(root, "words", Texts.json());
        try (BackendModel model = Texts.BACKEND.load(source, OPEN, new BackendContext(1, root, Map.of(), false))) {
            assertThat(model.config().maxBatchSize()).isZero();
        }
    }

    @Test
    void rowsArePaddedToTheLongestWithTheFilesOwnToken() {
        try (BackendModel model = load(Map.of())) {
            assertThat(run(model, "A man is eating.", "The cat", ""))
                    .containsExactly(
                            List.of(
                                    List.of(2L, 5L, 6L, 7L, 8L, 9L, 11L, 3L),
                                    List.of(2L, 12L, 13L, 3L, 4L, 4L, 4L, 4L),
                                    List.of(2L, 3L, 4L, 4L, 4L, 4L, 4L, 4L)),
                            List.of(
                                    List.of(1L, 1L, 1L, 1L, 1L, 1L, 1L, 1L),
                                    List.of(1L, 1L, 1L, 1L, 0L, 0L, 0L, 0L),
                                    List.of(1L, 1L, 0L, 0L, 0L, 0L, 0L, 0L)),
                            List.of(
                                    List.of(0L, 0L, 0L, 0L, 0L, 0L, 0L, 0L),
                                    List.of(0L, 0L, 0L, 0L, 1L, 1L, 1L, 1L),
                                    List.of(0L, 0L, 1L, 1L, 1L, 1L, 1L, 1L)));
        }
    }

    @Test
    void paddingFollowsTheFilesSide() {
        String left = Texts.json().replace("\"direction\": \"Right\"", "\"direction\": \"Left\"");
        try (BackendModel model = load(OPEN, left)) {
            assertThat(run(model, "a", "a man").get(0))
                    .containsExactly(List.of(4L, 2L, 5L, 3L), List.of(2L, 5L, 6L, 3L));
        }
    }

    @Test
    void withoutPaddingInTheFileItsPaddingTokenIsLookedUp() {
        String json = Texts.json();
        int from = json.indexOf("\"padding\"");
        int to = json.indexOf("\"added_tokens\"");
        String none = json.substring(0, from) + "\"padding\": null, " + json.substring(to);
        try (BackendModel model = load(OPEN, none)) {
            assertThat(run(model, "a", "a man").get(0).get(0)).containsExactly(2L, 5L, 3L, 4L);
        }
        ModelConfig configured =
                OPEN.toBuilder().parameters(Map.of("pad_id", "9")).build();
        try (BackendModel model = load(configured, none)) {
            assertThat(run(model, "a", "a man").get(0).get(0)).containsExactly(2L, 5L, 3L, 9L);
        }
    }

    @Test
    void lengthsAreLimitedAndPaddedAsAsked() {
        try (BackendModel model = load(Map.of("max_length", "4"))) {
            assertThat(run(model, "a man is eating").get(0)).containsExactly(List.of(2L, 5L, 6L, 3L));
        }
        try (BackendModel model = load(Map.of("max_length", "5", "padding", "max_length"))) {
            assertThat(run(model, "a").get(0)).containsExactly(List.of(2L, 5L, 3L, 4L, 4L));
        }
        try (BackendModel model = load(Map.of("pad_to_multiple_of", "4"))) {
            assertThat(run(model, "a man is").get(0)).containsExactly(List.of(2L, 5L, 6L, 7L, 3L, 4L, 4L, 4L));
        }
        try (BackendModel model = load(Map.of("add_special_tokens", "false"))) {
            assertThat(run(model, "a man").get(0)).containsExactly(List.of(5L, 6L));
        }
        try (BackendModel model = load(Map.of("padding", "false"))) {
            assertThat(run(model, "a", "man").get(0)).hasSize(2);
            assertThatThrownBy(() -> run(model, "a", "a man"))
                    .hasMessage("texts of 3 and 4 tokens do not fit one tensor without padding");
        }
    }

    @Test
    void theFilesOwnLimitHoldsUnlessTurnedOff() {
        String limited = Texts.json()
                .replace(
                        "\"truncation\": null",
                        "\"truncation\": {\"direction\": \"Right\", \"max_length\": 3, "
                                + "\"strategy\": \"LongestFirst\", \"stride\": 0}");
        try (BackendModel model = load(OPEN, limited)) {
            assertThat(run(model, "a man is").get(0)).containsExactly(List.of(2L, 5L, 3L));
        }
        ModelConfig off =
                OPEN.toBuilder().parameters(Map.of("truncation", "false")).build();
        try (BackendModel model = load(off, limited)) {
            assertThat(run(model, "a man is").get(0).get(0)).hasSize(5);
        }
    }

    @Test
    void twoInputsArePairsOfTexts() {
        ModelConfig pairs = OPEN.toBuilder()
                .maxBatchSize(8)
                .inputs(List.of(
                        new TensorSpec("QUERY", DataType.BYTES, Shape.of(1)),
                        new TensorSpec("PASSAGE", DataType.BYTES, Shape.of(1))))
                .outputs(List.of(
                        new TensorSpec("token_type_ids", DataType.INT32, Shape.of(-1)),
                        new TensorSpec("input_ids", DataType.INT32, Shape.of(-1))))
                .build();
        try (BackendModel model = load(pairs, Texts.json())) {
            assertThat(run(
                            model,
                            Texts.texts("QUERY", Shape.of(1, 1), "a man"),
                            Texts.texts("PASSAGE", Shape.of(1, 1), "the cat")))
                    .containsExactly(
                            List.of(List.of(0L, 0L, 0L, 0L, 1L, 1L, 1L)),
                            List.of(List.of(2L, 5L, 6L, 3L, 12L, 13L, 3L)));
        }
    }

    @Test
    void withoutABatchDimensionOneTextGivesOneRow() {
        try (BackendModel model = load(OPEN.toBuilder().maxBatchSize(0).build(), Texts.json())) {
            assertThat(run(model, Texts.texts("TEXT", Shape.of(1), "a")).get(0)).containsExactly(List.of(2L, 5L, 3L));
        }
        ModelConfig many = OPEN.toBuilder()
                .maxBatchSize(0)
                .inputs(List.of(new TensorSpec("TEXT", DataType.BYTES, Shape.of(-1))))
                .outputs(List.of(new TensorSpec("input_ids", DataType.INT64, Shape.of(-1, -1))))
                .build();
        try (BackendModel model = load(many, Texts.json())) {
            assertThat(run(model, Texts.texts("TEXT", Shape.of(2), "a", "cat")).get(0))
                    .hasSize(2);
            assertThat(run(model, Texts.texts("TEXT", Shape.of(0)))).containsExactly(List.of());
        }
    }

    @Test
    void oddTextIsTokenizedOrRefusedButNeverHarmsTheServer() {
        try (BackendModel model = load(Map.of())) {
            assertThat(run(model, "a\0 😀 \uFEFFman").get(0).get(0))
                    .startsWith(2L, 5L)
                    .endsWith(6L, 3L);
            byte[] latin = {1, 0, 0, 0, (byte) 0xe9};
            Tensor bad = Tensor.over("TEXT", DataType.BYTES, Shape.of(1, 1), MemoryRegion.copyOf(latin, 0, 5), 0, 5);
            assertThatThrownBy(() -> run(model, bad))
                    .isInstanceOfSatisfying(
                            ServingException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                    .hasMessage("element 0 of input 'TEXT' is not text in UTF-8");
            Tensor wide = Texts.texts("TEXT", Shape.of(1, 2), "a", "b");
            assertThatThrownBy(() -> run(model, wide)).hasMessageContaining("expected: one text in each row");
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "max_lenght | 8 | did you mean 'max_length'?",
                "max_length | 0 | expected: a whole number from 1",
                "max_length | 2 | 2 tokens mark begin and end",
                "truncation | yes | expected: true, false, longest_first",
                "truncation | true | truncates to no length",
                "padding | max_length | pads to no length",
                "pad_id | -1 | pad_id '-1'"
            })
    void parametersThatMeanNothingAreRefused(String key, String value, String text) {
        assertThatThrownBy(() -> load(Map.of(key, value))).isInstanceOfSatisfying(ServingException.class, e -> {
            assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
            assertThat(e.describe()).contains(text);
        });
    }

    @Test
    void tensorsThatATokenizerDoesNotHaveAreRefused() {
        List<TensorSpec> numbers = List.of(new TensorSpec("TEXT", DataType.INT32, Shape.of(1)));
        assertThatThrownBy(() -> load(OPEN.toBuilder().inputs(numbers).build(), Texts.json()))
                .hasMessageContaining("has input 'TEXT' INT32[1]");
        List<TensorSpec> other = List.of(new TensorSpec("ids", DataType.INT64, Shape.of(-1)));
        assertThatThrownBy(() -> load(OPEN.toBuilder().outputs(other).build(), Texts.json()))
                .hasMessageContaining("expected: input_ids, attention_mask, token_type_ids");
    }

    @Test
    void aMissingFileIsNamed() {
        ModelLocation nowhere = new ModelLocation(new ServableId("words", 1), root, root.resolve("9"));
        assertThatThrownBy(() -> Texts.BACKEND.load(nowhere, OPEN, new BackendContext(1, root, Map.of())))
                .hasMessageContaining("unable to find")
                .hasMessageContaining("tokenizer.json");
    }

    @Test
    void aRealTokenizerAgreesWithItsMakers() throws Exception {
        Path file = Path.of("../../examples/models/minilm/tokenizer.json");
        Assumptions.assumeTrue(java.nio.file.Files.exists(file), "NOT TESTED: no " + file + "; fetch it first");
        try (BackendModel model = load(OPEN, java.nio.file.Files.readString(file))) {
            assertThat(run(model, "A man is eating food.").get(0))
                    .containsExactly(List.of(101L, 1037L, 2158L, 2003L, 5983L, 2833L, 1012L, 102L));
            assertThat(run(model, "word ".repeat(500)).get(0).get(0)).hasSize(128);
        }
    }
}
