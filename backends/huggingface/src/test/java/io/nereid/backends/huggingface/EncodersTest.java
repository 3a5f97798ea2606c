// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import io.nereid.backend.BackendModel;
import io.nereid.json.JsonValues;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

/** The numbers of every architecture and task are those of transformers, together and one by one. */
class EncodersTest {
    private static final double NEAR = 1e-4;

    @TempDir
    Path root;

    static List<String> classifiers() {
        return Stream.of("-classify", "fp16", "bf16", "sharded")
                .flatMap(p -> EncoderFolders.names(p).stream())
                .toList();
    }

    static List<String> taggers() {
        return EncoderFolders.names("-tokens");
    }

    static List<String> embedders() {
        return Stream.concat(EncoderFolders.names("-embed").stream(), EncoderFolders.names("sentence-").stream())
                .toList();
    }

    static List<String> fillers() {
        return EncoderFolders.names("-mask");
    }

    static List<String> readers() {
        return EncoderFolders.names("-answer");
    }

    private static void near(List<?> actual, List<Double> expected, int width) {
        assertThat(actual).hasSize(expected.size());
        for (int i = 0; i < actual.size(); i++) {
            assertThat(((Number) actual.get(i)).doubleValue())
                    .as("number %s of width %s", i, width)
                    .isCloseTo(expected.get(i), within(NEAR));
        }
    }

    /** Runs the texts in one request, which pads the shorter ones, and one by one. */
    private static List<Object> bothWays(BackendModel model, List<String> texts, String output) {
        List<Object> together =
                EncoderFolders.run(model, EncoderFolders.texts("TEXT", texts)).get(output);
        List<Object> alone = new ArrayList<>();
        for (String text : texts) {
            alone.addAll(EncoderFolders.run(model, EncoderFolders.texts("TEXT", List.of(text)))
                    .get(output));
        }
        near(alone, EncoderFolders.numbers(together), 0);
        return together;
    }

    @ParameterizedTest
    @MethodSource("classifiers")
    void sequencesAreClassified(String name) {
        Map<?, ?> expected = EncoderFolders.expected(name);
        try (BackendModel model = EncoderFolders.load(root, name, Map.of())) {
            List<String> texts = EncoderFolders.strings(expected.get("texts"));
            List<Double> logits = EncoderFolders.numbers(expected.get("logits"));
            near(bothWays(model, texts, "logits"), logits, logits.size() / texts.size());
            Map<String, List<Object>> out = EncoderFolders.run(model, EncoderFolders.texts("TEXT", texts));
            assertThat(out.get("label")).hasSize(texts.size());
        }
    }

    @ParameterizedTest
    @MethodSource("embedders")
    void textsAreEmbedded(String name) {
        Map<?, ?> expected = EncoderFolders.expected(name);
        try (BackendModel model = EncoderFolders.load(root, name, Map.of())) {
            List<String> texts = EncoderFolders.strings(expected.get("texts"));
            near(bothWays(model, texts, "embedding"), EncoderFolders.numbers(expected.get("embedding")), 0);
        }
    }

    @ParameterizedTest
    @MethodSource("fillers")
    void masksAreFilled(String name) {
        Map<?, ?> expected = EncoderFolders.expected(name);
        try (BackendModel model = EncoderFolders.load(root, name, Map.of("top_k", "3"))) {
            List<String> texts = EncoderFolders.strings(expected.get("texts"));
            List<Object> documents = EncoderFolders.run(model, EncoderFolders.texts("TEXT", texts))
                    .get("predictions");
            List<Object> tokens = new ArrayList<>();
            List<Object> scores = new ArrayList<>();
            for (Object document : documents) {
                predictions(document).forEach(p -> {
                    tokens.add(p.get("token"));
                    scores.add(p.get("score"));
                });
            }
            near(tokens, EncoderFolders.numbers(expected.get("top")), 3);
            near(scores, EncoderFolders.numbers(expected.get("scores")), 3);
        }
        try (BackendModel model = EncoderFolders.load(root, name, Map.of("nereid.kserve_server", "true"))) {
            List<String> texts = EncoderFolders.strings(expected.get("texts"));
            List<Object> filled = EncoderFolders.run(model, EncoderFolders.texts("TEXT", texts))
                    .get("output-0");
            List<Integer> rows = EncoderFolders.numbers(expected.get("rows")).stream()
                    .map(Double::intValue)
                    .toList();
            List<String> decoded = EncoderFolders.strings(expected.get("decoded"));
            for (int i = 0; i < texts.size(); i++) {
                if (rows.indexOf(i) == rows.lastIndexOf(i)) {
                    assertThat(filled.get(i)).isEqualTo(decoded.get(rows.indexOf(i)));
                }
            }
        }
    }

    private static List<Map<?, ?>> predictions(Object document) {
        List<Map<?, ?>> all = new ArrayList<>();
        for (Object item : list(document)) {
            if (item instanceof Map<?, ?> map) {
                all.add(map);
            } else {
                ((List<?>) item).forEach(inner -> all.add((Map<?, ?>) inner));
            }
        }
        return all;
    }

    private static List<?> list(Object document) {
        return (List<?>)
                Objects.requireNonNull(JsonValues.read(String.valueOf(document).getBytes(StandardCharsets.UTF_8)));
    }

    @ParameterizedTest
    @MethodSource("taggers")
    void tokensAreClassified(String name) {
        Map<?, ?> expected = EncoderFolders.expected(name);
        List<String> texts = EncoderFolders.strings(expected.get("texts"));
        for (String strategy : List.of("none", "simple", "first", "average", "max")) {
            try (BackendModel model = EncoderFolders.load(root, name, Map.of("aggregation_strategy", strategy))) {
                List<Object> documents = EncoderFolders.run(model, EncoderFolders.texts("TEXT", texts))
                        .get("entities");
                List<?> wanted = (List<?>) ((Map<?, ?>) Objects.requireNonNull(expected.get("entities"))).get(strategy);
                for (int i = 0; i < texts.size(); i++) {
                    entities(strategy + " " + i, list(documents.get(i)), (List<?>) wanted.get(i));
                }
            }
        }
        try (BackendModel model = EncoderFolders.load(root, name, Map.of("nereid.kserve_server", "true"))) {
            List<Object> labels = EncoderFolders.run(model, EncoderFolders.texts("TEXT", texts))
                    .get("output-0");
            List<Double> logits = EncoderFolders.numbers(expected.get("logits"));
            List<Double> ids = EncoderFolders.numbers(expected.get("input_ids"));
            List<Object> wanted = new ArrayList<>();
            for (int i = 0; i < logits.size(); i += 5) {
                if (name.startsWith("modernbert") && ids.get(i / 5) == 0) {
                    // All that padding far from the text attends to is masked, so that its results have no meaning.
                    labels.remove(wanted.size());
                    continue;
                }
                List<Double> own = logits.subList(i, i + 5);
                wanted.add((long) own.indexOf(own.stream().max(Double::compare).orElseThrow()));
            }
            assertThat(labels).isEqualTo(wanted);
        }
    }

    private static void entities(String what, List<?> actual, List<?> expected) {
        assertThat(actual).as(what).hasSameSizeAs(expected);
        for (int i = 0; i < actual.size(); i++) {
            Map<?, ?> own = (Map<?, ?>) actual.get(i);
            Map<?, ?> wanted = (Map<?, ?>) expected.get(i);
            assertThat(own.keySet()).as(what).isEqualTo(wanted.keySet());
            for (Object key : own.keySet()) {
                if (key.equals("score")) {
                    near(List.of((Object) own.get(key)), List.of(((Number) wanted.get(key)).doubleValue()), 1);
                } else {
                    assertThat(own.get(key)).as("%s %s %s", what, i, key).isEqualTo(wanted.get(key));
                }
            }
        }
    }

    @ParameterizedTest
    @MethodSource("readers")
    void questionsAreAnswered(String name) {
        Map<?, ?> expected = EncoderFolders.expected(name);
        try (BackendModel model = EncoderFolders.load(root, name, Map.of())) {
            List<Object> pairs = new ArrayList<>((List<?>) Objects.requireNonNull(expected.get("pairs")));
            pairs.addAll((List<?>) Objects.requireNonNull(expected.get("long")));
            List<?> answers = (List<?>) Objects.requireNonNull(expected.get("answers"));
            for (int i = 0; i < pairs.size(); i++) {
                List<String> pair = EncoderFolders.strings(pairs.get(i));
                Map<String, List<Object>> out = EncoderFolders.run(
                        model,
                        EncoderFolders.texts("TEXT", pair.subList(0, 1)),
                        EncoderFolders.texts("TEXT_PAIR", pair.subList(1, 2)));
                Map<?, ?> wanted = (Map<?, ?>) answers.get(i);
                assertThat(out.get("answer")).containsExactly(wanted.get("answer"));
                assertThat(out.get("start")).containsExactly(wanted.get("start"));
                assertThat(out.get("end")).containsExactly(wanted.get("end"));
                near(out.get("score"), List.of(((Number) wanted.get("score")).doubleValue()), 1);
            }
        }
    }

    @Test
    void placesAreCountedInCodePoints() {
        String context = "\ud83d\ude00 \u00e9\u00e9 the cat \ud83d\ude00 sat in paris .";
        try (BackendModel model = EncoderFolders.load(root, "bert-answer", Map.of())) {
            Map<String, List<Object>> out = EncoderFolders.run(
                    model,
                    EncoderFolders.texts("TEXT", List.of("where is the cat ?")),
                    EncoderFolders.texts("TEXT_PAIR", List.of(context)));
            int start = ((Number) Objects.requireNonNull(out.get("start")).get(0)).intValue();
            int end = ((Number) Objects.requireNonNull(out.get("end")).get(0)).intValue();
            int[] points = context.codePoints().toArray();
            assertThat(new String(points, start, end - start))
                    .isEqualTo(out.get("answer").get(0))
                    .isNotBlank();
        }
        try (BackendModel model =
                EncoderFolders.load(root.resolve("all"), "bert-tokens", Map.of("aggregation_strategy", "none"))) {
            String text = "\ud83d\ude00 \ud83d\ude00 paris sat in london , the cat sat on the mat .";
            int[] points = text.codePoints().toArray();
            List<?> entities = list(EncoderFolders.run(model, EncoderFolders.texts("TEXT", List.of(text)))
                    .get("entities")
                    .get(0));
            int whole = 0;
            for (Object entity : entities) {
                Map<?, ?> fields = (Map<?, ?>) entity;
                int start = ((Number) Objects.requireNonNull(fields.get("start"))).intValue();
                int end = ((Number) Objects.requireNonNull(fields.get("end"))).intValue();
                String word = String.valueOf(fields.get("word")).replace("##", "");
                assertThat(new String(points, start, end - start)).isEqualTo(word);
                whole += start > 3 ? 1 : 0;
            }
            assertThat(whole).as("entities after the emojis").isPositive();
        }
    }

    @Test
    void aCrossEncoderScoresPairs() {
        Map<?, ?> expected = EncoderFolders.expected("cross-encoder");
        try (BackendModel model = EncoderFolders.load(root, "cross-encoder", Map.of())) {
            List<String> first = new ArrayList<>();
            List<String> second = new ArrayList<>();
            for (Object pair : (List<?>) Objects.requireNonNull(expected.get("pairs"))) {
                first.add(EncoderFolders.strings(pair).get(0));
                second.add(EncoderFolders.strings(pair).get(1));
            }
            Map<String, List<Object>> out = EncoderFolders.run(
                    model, EncoderFolders.texts("TEXT", first), EncoderFolders.texts("TEXT_PAIR", second));
            near(out.get("score"), EncoderFolders.numbers(expected.get("scores")), 1);
            near(out.get("logits"), EncoderFolders.numbers(expected.get("logits")), 1);
        }
    }

    @Test
    void kservesFormsOfAClassification() {
        List<String> texts = List.of("i love it !");
        try (BackendModel model = EncoderFolders.load(root, "bert-classify", Map.of("return_probabilities", "true"))) {
            Object literal = EncoderFolders.run(model, EncoderFolders.texts("TEXT", texts))
                    .get("output-0")
                    .get(0);
            assertThat(String.valueOf(literal))
                    .matches("\\{0: [01]\\.\\d{1,4}, 1: [01]\\.\\d{1,4}, 2: [01]\\.\\d{1,4}}");
        }
    }

    /** Older folders of BERT have the words of the tokenizer alone. */
    @ParameterizedTest
    @ValueSource(strings = {"bert-classify", "distilbert-classify", "electra-classify"})
    void aVocabularyOfWordPiecesIsATokenizer(String name) throws Exception {
        Path folder = EncoderFolders.location(root, name).versionDirectory();
        Map<?, ?> tokenizer = (Map<?, ?>)
                Objects.requireNonNull(JsonValues.read(Files.readAllBytes(folder.resolve("tokenizer.json"))));
        Map<?, ?> words = (Map<?, ?>) ((Map<?, ?>) tokenizer.get("model")).get("vocab");
        String[] lines = new String[words.size()];
        words.forEach((word, id) -> lines[((Long) id).intValue()] = (String) word);
        Files.writeString(folder.resolve("vocab.txt"), String.join("\n", lines) + "\n");
        Files.delete(folder.resolve("tokenizer.json"));
        Files.writeString(folder.resolve("tokenizer_config.json"), "{\"do_lower_case\": true}");
        Map<?, ?> expected = EncoderFolders.expected(name);
        try (BackendModel model = EncoderFolders.load(folder, name)) {
            List<Object> logits = EncoderFolders.run(
                            model,
                            EncoderFolders.texts(
                                    "TEXT",
                                    EncoderFolders.strings(expected.get("texts")).stream()
                                            .map(text -> text.toUpperCase(Locale.ROOT))
                                            .toList()))
                    .get("logits");
            near(logits, EncoderFolders.numbers(expected.get("logits")), 0);
        }
    }

    @Test
    void aTokenizerForLowerCaseKeepsTheCaseWhereTheParameterSaysSo() {
        String text = "THE CAT";
        try (BackendModel usual = EncoderFolders.load(root, "bert-embed", Map.of());
                BackendModel kept = EncoderFolders.load(root, "bert-embed", Map.of("do_lower_case", "false"))) {
            List<Object> lower = EncoderFolders.run(usual, EncoderFolders.texts("TEXT", List.of("the cat")))
                    .get("embedding");
            assertThat(EncoderFolders.run(usual, EncoderFolders.texts("TEXT", List.of(text)))
                            .get("embedding"))
                    .isEqualTo(lower);
            assertThat(EncoderFolders.run(kept, EncoderFolders.texts("TEXT", List.of("the cat")))
                            .get("embedding"))
                    .isEqualTo(lower);
            assertThat(EncoderFolders.run(kept, EncoderFolders.texts("TEXT", List.of(text)))
                            .get("embedding"))
                    .isNotEqualTo(lower);
        }
    }
}
