// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.json.JsonValues;
import io.nereid.json.JsonWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The components of a {@code tokenizer.json}, as maps and lists. Stateless.
 *
 * <p>Source: the documentation of the tokenizers library (components of a tokenizer).
 */
final class TokenizerDocument {
    /** What SentencePiece has in the place of a space. */
    static final String SPACE = "\u2581";

    private TokenizerDocument() {}

    /** An object with names and values in turn. */
    static Map<String, Object> object(@Nullable Object... fields) {
        Map<String, Object> all = new LinkedHashMap<>();
        for (int i = 0; i < fields.length; i += 2) {
            all.put(String.valueOf(fields[i]), fields[i + 1]);
        }
        return all;
    }

    /** The whole document, as text; texts are neither truncated nor padded. */
    static String text(
            List<Object> added,
            @Nullable Object normalizer,
            Object preTokenizer,
            Object postProcessor,
            Object decoder,
            Object model) {
        return text(object(
                "version",
                "1.0",
                "truncation",
                null,
                "padding",
                null,
                "added_tokens",
                added,
                "normalizer",
                normalizer,
                "pre_tokenizer",
                preTokenizer,
                "post_processor",
                postProcessor,
                "decoder",
                decoder,
                "model",
                model));
    }

    static String text(Map<String, Object> document) {
        JsonWriter writer = new JsonWriter(1 << 16);
        JsonValues.write(writer, document);
        return new String(writer.array(), 0, writer.length(), StandardCharsets.UTF_8);
    }

    static Object normalizers(List<Object> all) {
        return object("type", "Sequence", "normalizers", all);
    }

    static Object replace(String kind, String pattern, String content) {
        return object("type", "Replace", "pattern", object(kind, pattern), "content", content);
    }

    /** The normalizer of BERT. */
    static Object bertNormalizer(Map<?, ?> settings, boolean keepsCase) {
        return object(
                "type",
                "BertNormalizer",
                "clean_text",
                true,
                "handle_chinese_chars",
                !Boolean.FALSE.equals(settings.get("tokenize_chinese_chars")),
                "strip_accents",
                settings.get("strip_accents") instanceof Boolean strip ? strip : null,
                "lowercase",
                !keepsCase && !Boolean.FALSE.equals(settings.get("do_lower_case")));
    }

    /** Puts the marks around a text, or two. */
    static Object marks(Path file, SpecialTokens special, TokenizerKind kind, Map<String, Object> vocabulary) {
        String first = special.token("cls_token");
        String last = special.token("sep_token");
        Object one = id(file, vocabulary, first);
        Object two = id(file, vocabulary, last);
        boolean twice = kind == TokenizerKind.XLM_ROBERTA || kind == TokenizerKind.CAMEMBERT;
        long type = kind.hasTypes() ? 1 : 0;
        List<Object> pair = twice
                ? List.of(
                        mark(first, 0), sequence("A", 0), mark(last, 0), mark(last, 0), sequence("B", 0), mark(last, 0))
                : List.of(mark(first, 0), sequence("A", 0), mark(last, 0), sequence("B", type), mark(last, type));
        return object(
                "type",
                "TemplateProcessing",
                "single",
                List.of(mark(first, 0), sequence("A", 0), mark(last, 0)),
                "pair",
                pair,
                "special_tokens",
                object(
                        first,
                        object("id", first, "ids", List.of(one), "tokens", List.of(first)),
                        last,
                        object("id", last, "ids", List.of(two), "tokens", List.of(last))));
    }

    /** Puts RoBERTa's marks around a text, or two. */
    static Object robertaMarks(Path file, SpecialTokens special, Map<String, Object> vocabulary, boolean prefix) {
        String first = special.token("cls_token");
        String last = special.token("sep_token");
        return object(
                "type",
                "RobertaProcessing",
                "sep",
                List.of(last, id(file, vocabulary, last)),
                "cls",
                List.of(first, id(file, vocabulary, first)),
                "trim_offsets",
                true,
                "add_prefix_space",
                prefix);
    }

    private static Object mark(String token, long type) {
        return object("SpecialToken", object("id", token, "type_id", type));
    }

    private static Object sequence(String name, long type) {
        return object("Sequence", object("id", name, "type_id", type));
    }

    static Object id(Path file, Map<String, Object> vocabulary, String token) {
        Object id = vocabulary.get(token);
        if (id == null) {
            throw FolderFile.rejected(file, "it lacks the token '" + token + "'");
        }
        return id;
    }
}
