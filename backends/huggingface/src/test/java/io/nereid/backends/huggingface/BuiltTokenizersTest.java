// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.assertj.core.api.Assertions.within;

import io.nereid.backend.BackendModel;
import io.nereid.backends.huggingface.graph.EncoderConfig;
import io.nereid.backends.tokenizer.NativeTokenizer;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import io.nereid.json.JsonValues;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.LongStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipInputStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * Folders without {@code tokenizer.json} have the tokens of transformers. The folders are those of {@code tokenizers.zip}, which
 * {@code src/test/models/make_tokenizers.py} makes.
 */
class BuiltTokenizersTest {
    @TempDir
    Path root;

    private Path write(String name, Path folder) throws IOException {
        try (InputStream in = Objects.requireNonNull(BuiltTokenizersTest.class.getResourceAsStream("/tokenizers.zip"));
                ZipInputStream zip = new ZipInputStream(in)) {
            for (ZipEntry e = zip.getNextEntry(); e != null; e = zip.getNextEntry()) {
                if (e.getName().startsWith(name + "/")) {
                    Files.createDirectories(folder);
                    Files.write(folder.resolve(e.getName().substring(name.length() + 1)), zip.readAllBytes());
                }
            }
        }
        return folder;
    }

    private static Map<?, ?> json(Path file) throws IOException {
        return (Map<?, ?>) Objects.requireNonNull(JsonValues.read(Files.readAllBytes(file)));
    }

    private static NativeTokenizer open(Path folder) throws IOException {
        EncoderConfig config = new EncoderConfig(json(folder.resolve("config.json")));
        assertThat(NativeTokenizer.start()).isNull();
        return NativeTokenizer.open(
                "m", "tokenizer.json", TokenizerFile.read(folder, config, false).text());
    }

    private static List<Long> longs(long[] values) {
        return LongStream.of(values).boxed().toList();
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "roberta",
                "roberta-added",
                "mpnet",
                "xlm-roberta",
                "camembert",
                "albert",
                "albert-cased",
                "deberta",
                "deberta-table",
                "deberta-pairs"
            })
    void tokensAreThoseOfTransformers(String name) throws IOException {
        Path folder = write(name, root.resolve(name));
        Map<?, ?> expected = json(folder.resolve("expected.json"));
        try (NativeTokenizer tokenizer = open(folder)) {
            List<?> texts = (List<?>) Objects.requireNonNull(expected.get("texts"));
            for (int i = 0; i < texts.size(); i++) {
                long[] ids = tokenizer
                        .encodeWithPlaces(String.valueOf(texts.get(i)), null, true)
                        .ids();
                assertThat(longs(ids))
                        .as(
                                "%s of '%s'",
                                tokenizer
                                        .encodeWithPlaces(String.valueOf(texts.get(i)), null, true)
                                        .tokens(),
                                texts.get(i))
                        .isEqualTo(((List<?>) Objects.requireNonNull(expected.get("ids"))).get(i));
                assertThat(tokenizer.decode(ids, true))
                        .isEqualTo(((List<?>) Objects.requireNonNull(expected.get("decoded"))).get(i));
            }
            List<?> pairs = (List<?>) Objects.requireNonNull(expected.get("pairs"));
            for (int i = 0; i < pairs.size(); i++) {
                List<String> pair = EncoderFolders.strings(pairs.get(i));
                NativeTokenizer.Encoding encoding = tokenizer.encodeWithPlaces(pair.get(0), pair.get(1), true);
                assertThat(longs(encoding.ids()))
                        .isEqualTo(((List<?>) Objects.requireNonNull(expected.get("pair_ids"))).get(i));
                assertThat(longs(encoding.types()))
                        .isEqualTo(((List<?>) Objects.requireNonNull(expected.get("pair_types"))).get(i));
            }
        }
    }

    /** The folder of a model with the files of a tokenizer in the place of its own. */
    private Path encoder(String name, String tokenizer) throws IOException {
        Path folder = EncoderFolders.write(root.resolve(name), name);
        Files.delete(folder.resolve("tokenizer.json"));
        Path files = write(tokenizer, root.resolve("files"));
        for (String file : List.of("vocab.json", "merges.txt", "spm.model", "tokenizer_config.json")) {
            if (Files.exists(files.resolve(file))) {
                Files.copy(files.resolve(file), folder.resolve(file), StandardCopyOption.REPLACE_EXISTING);
            }
        }
        return folder;
    }

    @ParameterizedTest
    @CsvSource({"roberta-classify, roberta", "deberta-classify, deberta"})
    void encodersRunWithThem(String name, String tokenizer) throws IOException {
        Map<?, ?> expected = EncoderFolders.expected(name);
        try (BackendModel model = EncoderFolders.load(encoder(name, tokenizer), name)) {
            List<String> texts = EncoderFolders.strings(expected.get("texts"));
            List<Object> logits = Objects.requireNonNull(EncoderFolders.run(model, EncoderFolders.texts("TEXT", texts))
                    .get("logits"));
            List<Double> wanted = EncoderFolders.numbers(Objects.requireNonNull(expected.get("logits")));
            assertThat(logits).hasSameSizeAs(wanted);
            for (int i = 0; i < wanted.size(); i++) {
                assertThat((double) logits.get(i)).isCloseTo(wanted.get(i), within(1e-4));
            }
        }
    }

    /** Nothing in this folder says which token stands for masks, and that it takes the space before it along. */
    @Test
    void masksAreFilledWithoutAnySettings() throws IOException {
        Map<?, ?> expected = EncoderFolders.expected("roberta-mask");
        List<String> texts = EncoderFolders.strings(expected.get("texts"));
        Path folder = encoder("roberta-mask", "roberta");
        Files.delete(folder.resolve("tokenizer_config.json"));
        try (BackendModel model = EncoderFolders.load(folder, "roberta-mask")) {
            List<Object> documents = EncoderFolders.run(model, EncoderFolders.texts("TEXT", texts))
                    .get("predictions");
            Object first = JsonValues.read(
                    String.valueOf(Objects.requireNonNull(documents).get(0)).getBytes(StandardCharsets.UTF_8));
            List<Double> tokens = new ArrayList<>();
            for (Object prediction : (List<?>) Objects.requireNonNull(first)) {
                tokens.add(((Number) Objects.requireNonNull(((Map<?, ?>) prediction).get("token"))).doubleValue());
            }
            assertThat(tokens.subList(0, 3))
                    .isEqualTo(EncoderFolders.numbers(Objects.requireNonNull(expected.get("top")))
                            .subList(0, 3));
        }
    }

    private ServingException refused(Path folder) {
        ServingException e = catchThrowableOfType(
                ServingException.class, () -> EncoderFolders.load(folder, "m").close());
        assertThat(e).isNotNull();
        assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT);
        return e;
    }

    @Test
    void damagedFilesAreRefused() throws IOException {
        Path folder = encoder("deberta-classify", "deberta");
        Path pieces = folder.resolve("spm.model");
        byte[] whole = Files.readAllBytes(pieces);
        Files.write(pieces, Arrays.copyOf(whole, whole.length / 2));
        assertThat(refused(folder)).hasMessageContaining("spm.model").hasMessageContaining("is damaged");
        Files.write(pieces, new byte[0]);
        assertThat(refused(folder)).hasMessageContaining("it has no pieces");
        // Field 2, its field 3: words.
        byte[] words = Arrays.copyOf(whole, whole.length + 4);
        System.arraycopy(new byte[] {0x12, 2, 0x18, 3}, 0, words, whole.length, 4);
        Files.write(pieces, words);
        assertThat(refused(folder)).hasMessageContaining("model_type 3 (expected: 1, unigram, or 2, BPE)");
        // Field 3, its field 4.
        System.arraycopy(new byte[] {0x1a, 2, 0x20, 0}, 0, words, whole.length, 4);
        Files.write(pieces, words);
        assertThat(refused(folder)).hasMessageContaining("remove_extra_whitespaces false");
        // Field 1 without a text.
        System.arraycopy(new byte[] {0xa, 2, 0x18, 1}, 0, words, whole.length, 4);
        Files.write(pieces, words);
        assertThat(refused(folder)).hasMessageContaining("a piece of 0 characters");
        Files.write(pieces, whole);
        Files.writeString(folder.resolve("added_tokens.json"), "{\"[MASK]\": 81}");
        assertThat(refused(folder)).hasMessageContaining("'[MASK]' has the number 81 (expected: 82");

        folder = encoder("roberta-classify", "roberta");
        Files.writeString(folder.resolve("merges.txt"), "#version: 0.2\na b c\n");
        assertThat(refused(folder)).hasMessageContaining("it has the line 'a b c' (expected: two tokens)");
        Files.writeString(folder.resolve("vocab.json"), "{\"a\": -1}");
        assertThat(refused(folder)).hasMessageContaining("its token 'a' has the number '-1'");
        Files.delete(folder.resolve("vocab.json"));
        assertThat(refused(folder).remedy()).contains("AutoTokenizer.from_pretrained");
    }
}
