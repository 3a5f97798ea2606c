// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * The special tokens of a folder, and those that were added to its vocabulary: of {@code tokenizer_config.json}, of
 * {@code special_tokens_map.json} and {@code added_tokens.json}, and those that the tokenizer has by default. Immutable.
 *
 * <p>Source: the documentation of transformers' {@code PreTrainedTokenizer}; the precedence is that of transformers.
 */
final class SpecialTokens {
    private static final String DECODER = "added_tokens_decoder";
    private static final List<String> KEYS =
            List.of("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token");
    private static final List<String> FURTHER = List.of("additional_special_tokens", "extra_special_tokens");

    private final Path folder;
    private final Map<String, Object> settings;
    private final @Nullable TokenizerKind kind;

    private SpecialTokens(Path folder, Map<String, Object> settings, @Nullable TokenizerKind kind) {
        this.folder = folder;
        this.settings = settings;
        this.kind = kind;
    }

    /**
     * @param given the fields of {@code tokenizer_config.json}
     * @param kind of the tokenizer, where it is known
     */
    static SpecialTokens read(Path folder, Map<?, ?> given, @Nullable TokenizerKind kind) {
        Map<String, Object> settings = new LinkedHashMap<>();
        given.forEach((key, value) -> settings.put(String.valueOf(key), value));
        if (!settings.containsKey(DECODER)) {
            Map<?, ?> map = FolderFile.object(folder.resolve("special_tokens_map.json"));
            if (map != null) {
                map.forEach((key, value) -> settings.put(String.valueOf(key), value));
            }
        }
        if (kind != null) {
            kind.usual().forEach((key, token) -> {
                if (content(settings.get(key)) == null) {
                    settings.put(key, token);
                }
            });
        }
        return new SpecialTokens(folder, settings, kind);
    }

    /** The fields of {@code tokenizer_config.json}, with the special tokens of the other sources. */
    Map<?, ?> settings() {
        return settings;
    }

    /** The token with a key of {@code tokenizer_config.json}, such as {@code cls_token}; empty when there is none. */
    String token(String key) {
        String content = content(settings.get(key));
        return content == null ? "" : content;
    }

    private static @Nullable String content(@Nullable Object token) {
        Object text = token instanceof Map<?, ?> map ? map.get("content") : token;
        return text instanceof String content ? content : null;
    }

    /**
     * The {@code added_tokens} of a {@code tokenizer.json}, in the order of their numbers. What is not in the vocabulary gets the numbers
     * behind it. A token without a place in the model's embeddings is left out, as no text can have it.
     *
     * @param vocabulary the numbers of the tokens; those of all of these tokens are put into it
     * @param controls tokens of the vocabulary that stand for no text
     * @param most the size of the model's vocabulary; 0 when it is not known
     */
    List<Object> added(Map<String, Object> vocabulary, List<String> controls, long most) {
        long next = vocabulary.size();
        Map<Long, Object> added = new TreeMap<>();
        Set<String> done = new HashSet<>();
        for (Map.Entry<Long, Object> entry : explicit().entrySet()) {
            Map<?, ?> token = (Map<?, ?>) entry.getValue();
            String content = String.valueOf(token.get("content"));
            Object known = vocabulary.get(content);
            if (known == null && most > 0 && entry.getKey() >= most) {
                continue;
            }
            if (known == null ? entry.getKey() != next : !known.equals(entry.getKey())) {
                throw FolderFile.rejected(
                        folder,
                        "its token '" + content + "' has the number " + entry.getKey() + " (expected: "
                                + (known == null ? next : known) + ", that of the vocabulary or the next one)");
            }
            if (known == null) {
                vocabulary.put(content, next++);
            }
            done.add(content);
            added.put(entry.getKey(), token);
        }
        List<@Nullable Object> others = new ArrayList<>(controls);
        KEYS.forEach(key -> others.add(settings.get(key)));
        for (String key : FURTHER) {
            if (settings.get(key) instanceof List<?> list) {
                others.addAll(list);
            }
        }
        String mask = token("mask_token");
        for (@Nullable Object other : others) {
            String content = content(other);
            if (content == null || content.isEmpty() || !done.add(content)) {
                continue;
            }
            Object known = vocabulary.get(content);
            if (known == null) {
                if (most > 0 && next >= most) {
                    continue;
                }
                known = next;
                vocabulary.put(content, next++);
            }
            Map<?, ?> given = other instanceof Map<?, ?> map ? map : special(content, mask);
            added.put((Long) known, entry((Long) known, content, given, true));
        }
        return List.copyOf(added.values());
    }

    private Map<String, Object> special(String content, String mask) {
        return Map.of("lstrip", content.equals(mask) && kind != null && kind.maskTakesSpace(), "normalized", false);
    }

    /** What {@code added_tokens_decoder} or {@code added_tokens.json} has, by number. */
    private Map<Long, Object> explicit() {
        Map<Long, Object> all = new TreeMap<>();
        if (settings.get(DECODER) instanceof Map<?, ?> decoder) {
            decoder.forEach((number, value) -> {
                String content = content(value);
                if (content == null || !(value instanceof Map<?, ?> token)) {
                    throw FolderFile.rejected(
                            folder.resolve("tokenizer_config.json"),
                            "token " + number + " of " + DECODER + " is not an object");
                }
                long id = number(String.valueOf(number));
                all.put(id, entry(id, content, token, Boolean.TRUE.equals(token.get("special"))));
            });
            return all;
        }
        Map<?, ?> file = FolderFile.object(folder.resolve("added_tokens.json"));
        if (file == null) {
            return all;
        }
        Map<String, Object> specials = new LinkedHashMap<>();
        KEYS.forEach(key -> specials.put(token(key), settings.get(key)));
        for (String key : FURTHER) {
            if (settings.get(key) instanceof List<?> list) {
                list.forEach(token -> specials.put(String.valueOf(content(token)), token));
            }
        }
        String mask = token("mask_token");
        file.forEach((token, number) -> {
            String content = String.valueOf(token);
            long id = number(String.valueOf(number));
            boolean special = specials.containsKey(content);
            Map<?, ?> given = specials.get(content) instanceof Map<?, ?> map
                    ? map
                    : special ? special(content, mask) : Map.of("normalized", true);
            all.put(id, entry(id, content, given, special));
        });
        return all;
    }

    private long number(String text) {
        if (!text.matches("[0-9]{1,9}")) {
            throw FolderFile.rejected(folder, "an added token has the number '" + text + "'");
        }
        return Long.parseLong(text);
    }

    private static Map<String, Object> entry(long id, String content, Map<?, ?> flags, boolean special) {
        return TokenizerDocument.object(
                "id",
                id,
                "content",
                content,
                "single_word",
                Boolean.TRUE.equals(flags.get("single_word")),
                "lstrip",
                Boolean.TRUE.equals(flags.get("lstrip")),
                "rstrip",
                Boolean.TRUE.equals(flags.get("rstrip")),
                "normalized",
                Boolean.TRUE.equals(flags.get("normalized")),
                "special",
                special);
    }
}
