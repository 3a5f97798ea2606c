// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import static io.nereid.backends.huggingface.TokenizerDocument.object;

import io.nereid.backends.huggingface.graph.EncoderConfig;
import io.nereid.base.ServingException;
import io.nereid.json.JsonValues;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The {@code tokenizer.json} of a folder: the file itself, or what follows from the files of older folders, which have no such file: {@code
 * vocab.txt}; {@code vocab.json} with {@code merges.txt}; a model of SentencePiece.
 *
 * <p>Source: the documentation of the tokenizers library (components of a tokenizer) and of transformers' tokenizers (their settings,
 * defaults and files).
 *
 * @param text a {@code tokenizer.json}
 * @param settings the fields of {@code tokenizer_config.json} and the special tokens
 */
record TokenizerFile(String text, Map<?, ?> settings) {
    static final String NAME = "tokenizer.json";

    private static final String WORDS = "vocab.txt";
    private static final String VOCABULARY = "vocab.json";
    private static final String MERGES = "merges.txt";
    private static final List<String> SENTENCE_PIECE = List.of("sentencepiece.bpe.model", "spiece.model", "spm.model");
    private static final long MOST_BYTES = 256 << 20;

    /**
     * Reads the file, or makes its text.
     *
     * @param keepsCase whether texts keep their case, whatever the file says
     * @throws ServingException INVALID_ARGUMENT for a folder without a tokenizer
     */
    static TokenizerFile read(Path folder, EncoderConfig config, boolean keepsCase) {
        Map<?, ?> given = FolderFile.object(folder.resolve("tokenizer_config.json"));
        Map<?, ?> settings = given == null ? Map.of() : given;
        TokenizerKind kind = TokenizerKind.of(config, settings);
        SpecialTokens special = SpecialTokens.read(folder, settings, kind);
        Path file = folder.resolve(NAME);
        if (Files.isRegularFile(file)) {
            byte[] text = FolderFile.bytes(file, MOST_BYTES);
            return new TokenizerFile(
                    keepsCase ? withCase(file, text) : new String(text, StandardCharsets.UTF_8), special.settings());
        }
        String made = kind == null ? null : made(folder, kind, special, config.index("vocab_size", 0), keepsCase);
        if (made != null) {
            return new TokenizerFile(made, special.settings());
        }
        throw ServingException.invalidArgument(
                "unable to find '" + file + "', the model's tokenizer",
                "write it beside the model: python3 -c \"from transformers import AutoTokenizer;"
                        + " AutoTokenizer.from_pretrained('" + folder + "').save_pretrained('" + folder + "')\"");
    }

    private static @Nullable String made(
            Path folder, TokenizerKind kind, SpecialTokens special, long most, boolean keepsCase) {
        if (kind.wordPiece()) {
            Path words = folder.resolve(WORDS);
            return Files.isRegularFile(words) ? ofWords(words, kind, special, most, keepsCase) : null;
        }
        if (kind.sentencePiece()) {
            for (String name : SENTENCE_PIECE) {
                Path pieces = folder.resolve(name);
                if (Files.isRegularFile(pieces)) {
                    return new SentencePieceTokenizer(pieces, kind, special).text(keepsCase, most);
                }
            }
        }
        boolean bytes = kind == TokenizerKind.ROBERTA || kind == TokenizerKind.MODERNBERT;
        // Models with RoBERTa's architecture under another name may have its tokenizer.
        boolean unnamed = special.settings().get("tokenizer_class") == null
                && (kind == TokenizerKind.XLM_ROBERTA || kind == TokenizerKind.CAMEMBERT);
        return (bytes || unnamed)
                        && Files.isRegularFile(folder.resolve(VOCABULARY))
                        && Files.isRegularFile(folder.resolve(MERGES))
                ? ofBytes(folder, kind, special, most)
                : null;
    }

    private static String ofWords(Path file, TokenizerKind kind, SpecialTokens special, long most, boolean keepsCase) {
        Map<String, Object> vocabulary = new LinkedHashMap<>();
        long lines = 0;
        for (String line : lines(file)) {
            vocabulary.put(line, lines++);
        }
        String unknown = special.token("unk_token");
        TokenizerDocument.id(file, vocabulary, unknown);
        Map<String, Object> known = new LinkedHashMap<>(vocabulary);
        List<Object> added = special.added(known, List.of(), most > 0 ? most : lines);
        return TokenizerDocument.text(
                added,
                TokenizerDocument.bertNormalizer(special.settings(), keepsCase),
                object("type", "BertPreTokenizer"),
                kind == TokenizerKind.MPNET
                        ? TokenizerDocument.robertaMarks(file, special, known, false)
                        : TokenizerDocument.marks(file, special, kind, known),
                object("type", "WordPiece", "prefix", "##", "cleanup", true),
                object(
                        "type",
                        "WordPiece",
                        "unk_token",
                        unknown,
                        "continuing_subword_prefix",
                        "##",
                        "max_input_chars_per_word",
                        100L,
                        "vocab",
                        vocabulary));
    }

    private static String ofBytes(Path folder, TokenizerKind kind, SpecialTokens special, long most) {
        Path file = folder.resolve(VOCABULARY);
        Map<String, Object> vocabulary = new LinkedHashMap<>();
        if (!(FolderFile.read(file, MOST_BYTES) instanceof Map<?, ?> numbers)) {
            throw FolderFile.rejected(file, "it is not a JSON object");
        }
        numbers.forEach((token, number) -> {
            if (!(number instanceof Long n) || n < 0) {
                throw FolderFile.rejected(file, "its token '" + token + "' has the number '" + number + "'");
            }
            vocabulary.put(String.valueOf(token), n);
        });
        Path rules = folder.resolve(MERGES);
        List<String> merges = new ArrayList<>();
        for (String line : lines(rules)) {
            // The first line says the version of the format.
            if (line.isEmpty() || line.startsWith("#version")) {
                continue;
            }
            if (line.indexOf(' ') <= 0 || line.indexOf(' ') != line.lastIndexOf(' ') || line.endsWith(" ")) {
                throw FolderFile.rejected(rules, "it has the line '" + line + "' (expected: two tokens)");
            }
            merges.add(line);
        }
        boolean prefix = Boolean.TRUE.equals(special.settings().get("add_prefix_space"));
        boolean modern = kind == TokenizerKind.MODERNBERT;
        Map<String, Object> known = new LinkedHashMap<>(vocabulary);
        List<Object> added = special.added(known, List.of(), most);
        return TokenizerDocument.text(
                added,
                modern ? object("type", "NFC") : null,
                bytes(prefix),
                modern
                        ? TokenizerDocument.marks(file, special, kind, known)
                        : TokenizerDocument.robertaMarks(file, special, known, prefix),
                bytes(true),
                object(
                        "type",
                        "BPE",
                        "continuing_subword_prefix",
                        "",
                        "end_of_word_suffix",
                        "",
                        "fuse_unk",
                        false,
                        "vocab",
                        vocabulary,
                        "merges",
                        merges));
    }

    private static Object bytes(boolean prefix) {
        return object("type", "ByteLevel", "add_prefix_space", prefix, "trim_offsets", true, "use_regex", true);
    }

    private static String[] lines(Path file) {
        return new String(FolderFile.bytes(file, MOST_BYTES), StandardCharsets.UTF_8).split("\\r?\\n");
    }

    /** The file with a normalizer that does not change the case. */
    private static String withCase(Path file, byte[] text) {
        if (!(JsonValues.read(text) instanceof Map<?, ?> whole)) {
            throw FolderFile.rejected(file, "it is not a JSON object");
        }
        Map<String, Object> all = new LinkedHashMap<>();
        whole.forEach(
                (name, value) -> all.put(String.valueOf(name), "normalizer".equals(name) ? keepingCase(value) : value));
        return TokenizerDocument.text(all);
    }

    private static @Nullable Object keepingCase(@Nullable Object normalizer) {
        if (!(normalizer instanceof Map<?, ?> fields)) {
            return normalizer;
        }
        if ("Lowercase".equals(fields.get("type"))) {
            return null;
        }
        Map<String, Object> all = new LinkedHashMap<>();
        fields.forEach((name, value) -> {
            Object kept = value;
            if ("lowercase".equals(name)) {
                kept = false;
            } else if ("normalizers".equals(name) && value instanceof List<?> list) {
                List<Object> rest = new ArrayList<>();
                for (Object one : list) {
                    Object inner = keepingCase(one);
                    if (inner != null) {
                        rest.add(inner);
                    }
                }
                kept = rest;
            }
            all.put(String.valueOf(name), kept);
        });
        return all;
    }
}
