// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.backends.huggingface.graph.EncoderConfig;
import io.nereid.base.ServingException;
import io.nereid.json.JsonValues;
import io.nereid.json.JsonWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The {@code tokenizer.json} of a folder: the file itself, or what follows from the {@code vocab.txt} of older folders of BERT, DistilBERT
 * and ELECTRA, which have no such file. Stateless.
 *
 * <p>Source: the documentation of the tokenizers library (components of a tokenizer) and of transformers' {@code BertTokenizer} (its
 * settings and their defaults).
 */
final class TokenizerFile {
    static final String NAME = "tokenizer.json";

    private static final String VOCABULARY = "vocab.txt";
    private static final long MOST_BYTES = 256 << 20;
    private static final Set<String> WORD_PIECES =
            Set.of("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer", "bert", "distilbert", "electra");

    private TokenizerFile() {}

    /**
     * Reads the file, or makes its text.
     *
     * @param settings the fields of {@code tokenizer_config.json}
     * @param keepsCase whether texts keep their case, whatever the file says
     * @throws ServingException INVALID_ARGUMENT for a folder without a tokenizer
     */
    static String read(Path folder, EncoderConfig config, Map<?, ?> settings, boolean keepsCase) {
        Path file = folder.resolve(NAME);
        if (Files.isRegularFile(file)) {
            byte[] text = FolderFile.bytes(file, MOST_BYTES);
            return keepsCase ? withCase(file, text) : new String(text, StandardCharsets.UTF_8);
        }
        String named = settings.get("tokenizer_class") instanceof String name
                ? name.replaceFirst("Fast$", "")
                : config.text("model_type", "");
        Path vocabulary = folder.resolve(VOCABULARY);
        if (WORD_PIECES.contains(named) && Files.isRegularFile(vocabulary)) {
            return write(ofWordPieces(vocabulary, settings, keepsCase));
        }
        throw ServingException.invalidArgument(
                "unable to find '" + file + "', the model's tokenizer",
                "write it beside the model: python3 -c \"from transformers import AutoTokenizer;"
                        + " AutoTokenizer.from_pretrained('" + folder + "').save_pretrained('" + folder + "')\"");
    }

    private static Map<String, Object> ofWordPieces(Path file, Map<?, ?> settings, boolean keepsCase) {
        Map<String, Object> vocabulary = new LinkedHashMap<>();
        String text = new String(FolderFile.bytes(file, MOST_BYTES), StandardCharsets.UTF_8);
        long lines = 0;
        for (String line : text.split("\\r?\\n")) {
            vocabulary.put(line, lines++);
        }
        String unknown = token(settings, "unk_token", "[UNK]");
        String first = token(settings, "cls_token", "[CLS]");
        String last = token(settings, "sep_token", "[SEP]");
        Map<String, Object> marks = new LinkedHashMap<>();
        for (String mark : List.of(first, last)) {
            marks.put(mark, object("id", mark, "ids", List.of(id(file, vocabulary, mark)), "tokens", List.of(mark)));
        }
        List<Object> added = new ArrayList<>();
        Set<String> specials = new LinkedHashSet<>(List.of(unknown, first, last));
        for (String other : List.of(token(settings, "pad_token", "[PAD]"), token(settings, "mask_token", "[MASK]"))) {
            if (vocabulary.containsKey(other)) {
                specials.add(other);
            }
        }
        for (String special : specials) {
            added.add(object(
                    "id",
                    id(file, vocabulary, special),
                    "content",
                    special,
                    "single_word",
                    false,
                    "lstrip",
                    false,
                    "rstrip",
                    false,
                    "normalized",
                    false,
                    "special",
                    true));
        }
        added.sort((a, b) -> Long.compare(number(a), number(b)));
        Object lower = !keepsCase && !Boolean.FALSE.equals(settings.get("do_lower_case"));
        return object(
                "version",
                "1.0",
                "truncation",
                null,
                "padding",
                null,
                "added_tokens",
                added,
                "normalizer",
                object(
                        "type",
                        "BertNormalizer",
                        "clean_text",
                        true,
                        "handle_chinese_chars",
                        !Boolean.FALSE.equals(settings.get("tokenize_chinese_chars")),
                        "strip_accents",
                        settings.get("strip_accents") instanceof Boolean strip ? strip : null,
                        "lowercase",
                        lower),
                "pre_tokenizer",
                object("type", "BertPreTokenizer"),
                "post_processor",
                object(
                        "type",
                        "TemplateProcessing",
                        "single",
                        List.of(mark(first, 0), sequence("A", 0), mark(last, 0)),
                        "pair",
                        List.of(mark(first, 0), sequence("A", 0), mark(last, 0), sequence("B", 1), mark(last, 1)),
                        "special_tokens",
                        marks),
                "decoder",
                object("type", "WordPiece", "prefix", "##", "cleanup", true),
                "model",
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

    private static long number(Object added) {
        return added instanceof Map<?, ?> fields && fields.get("id") instanceof Long id ? id : 0;
    }

    private static Object mark(String token, long type) {
        return object("SpecialToken", object("id", token, "type_id", type));
    }

    private static Object sequence(String name, long type) {
        return object("Sequence", object("id", name, "type_id", type));
    }

    private static Object id(Path file, Map<String, Object> vocabulary, String token) {
        Object id = vocabulary.get(token);
        if (id == null) {
            throw FolderFile.rejected(file, "it lacks the token '" + token + "'");
        }
        return id;
    }

    private static String token(Map<?, ?> settings, String key, String usual) {
        Object token = settings.get(key) instanceof Map<?, ?> map ? map.get("content") : settings.get(key);
        return token instanceof String text ? text : usual;
    }

    private static Map<String, Object> object(@Nullable Object... fields) {
        Map<String, Object> all = new LinkedHashMap<>();
        for (int i = 0; i < fields.length; i += 2) {
            all.put(String.valueOf(fields[i]), fields[i + 1]);
        }
        return all;
    }

    /** The file with a normalizer that does not change the case. */
    private static String withCase(Path file, byte[] text) {
        if (!(JsonValues.read(text) instanceof Map<?, ?> whole)) {
            throw FolderFile.rejected(file, "it is not a JSON object");
        }
        Map<String, Object> all = new LinkedHashMap<>();
        whole.forEach(
                (name, value) -> all.put(String.valueOf(name), "normalizer".equals(name) ? keepingCase(value) : value));
        return write(all);
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

    private static String write(Map<String, Object> document) {
        JsonWriter writer = new JsonWriter(1 << 16);
        JsonValues.write(writer, document);
        return new String(writer.array(), 0, writer.length(), StandardCharsets.UTF_8);
    }
}
