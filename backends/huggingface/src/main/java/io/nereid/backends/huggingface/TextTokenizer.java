// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.backends.huggingface.graph.EncoderConfig;
import io.nereid.backends.huggingface.graph.EncoderFamily;
import io.nereid.backends.huggingface.graph.EncoderTask;
import io.nereid.backends.tokenizer.NativeTokenizer;
import io.nereid.backends.tokenizer.NativeTokenizer.Encoding;
import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The tokenizer of a folder, configured for a model. Thread-safe; closed by the model. */
final class TextTokenizer implements AutoCloseable {
    /** What transformers' pipeline for answers has where a request does not say it. */
    private static final int USUAL_WINDOW = 384;

    private static final int USUAL_STRIDE = 128;

    private final NativeTokenizer tokenizer;
    private final boolean special;
    private final boolean lowerCase;
    private final String prompt;
    private final long padding;
    private final long mask;
    private final long unknown;
    private final long bytes;
    private final boolean prefixes;
    /** The most tokens of an input. */
    private final int most;

    private final int vocabulary;
    private final boolean marks;
    private final long first;
    /** Of a window over two texts, and what it has in common with the one before; 0 when texts are truncated. */
    private int length;

    private int stride;

    private TextTokenizer(
            NativeTokenizer tokenizer,
            Map<?, ?> settings,
            TextSettings wanted,
            @Nullable SentenceModules modules,
            EncoderConfig config,
            int most,
            String json) {
        this.tokenizer = tokenizer;
        this.special = wanted.special();
        this.lowerCase = Boolean.TRUE.equals(wanted.lowerCase()) || (modules != null && modules.lowerCase());
        this.prompt = modules == null ? "" : modules.prompt();
        long pad = id(settings, "pad_token");
        this.padding = pad >= 0 ? pad : config.index("pad_token_id", 0);
        this.mask = id(settings, "mask_token");
        this.unknown = id(settings, "unk_token");
        this.most = most;
        this.vocabulary = config.index("vocab_size", 0);
        this.first = id(settings, "cls_token");
        this.bytes = json.length();
        this.prefixes = json.contains("\"continuing_subword_prefix\"") && json.contains("\"WordPiece\"");
        this.marks = json.contains("\"Metaspace\"");
    }

    /** @throws ServingException INVALID_ARGUMENT when the folder has no tokenizer, or the parameters do not fit it */
    static TextTokenizer open(
            String model,
            Path folder,
            EncoderConfig config,
            EncoderFamily family,
            EncoderTask task,
            TextSettings wanted,
            @Nullable SentenceModules modules) {
        TokenizerFile file = TokenizerFile.read(folder, config, Boolean.FALSE.equals(wanted.lowerCase()));
        Map<?, ?> settings = file.settings();
        String json = file.text();
        String unavailable = NativeTokenizer.start();
        if (unavailable != null) {
            throw ServingException.of(
                    ErrorCode.FAILED_PRECONDITION,
                    unavailable,
                    "the library needs Linux with glibc 2.34 or newer on x86-64 or arm64, or macOS on arm64");
        }
        NativeTokenizer tokenizer = NativeTokenizer.open(model, TokenizerFile.NAME, json);
        boolean opened = false;
        try {
            tokenizer.neverPad();
            String pair = task == EncoderTask.QUESTION_ANSWERING ? "" : null;
            int marks = tokenizer.encodeWithPlaces("", pair, wanted.special()).ids().length;
            int length = length(model, config, family, wanted, modules, settings, pair != null, marks);
            TextTokenizer own = new TextTokenizer(tokenizer, settings, wanted, modules, config, length, json);
            if (pair == null) {
                tokenizer.truncate(length, "LONGEST_FIRST");
            } else {
                tokenizer.neverTruncate();
                own.windows(model, wanted, length);
            }
            opened = true;
            return own;
        } finally {
            if (!opened) {
                tokenizer.close();
            }
        }
    }

    private void windows(String model, TextSettings wanted, int whole) {
        length = whole;
        stride = wanted.stride() > 0 ? wanted.stride() : Math.min(whole / 2, USUAL_STRIDE);
        if (stride >= whole) {
            throw ServingException.invalidArgument(
                    "model '" + model + "' has doc_stride " + stride + " (expected: less than max_length, " + whole
                            + ")",
                    "set the parameter doc_stride");
        }
    }

    private static int length(
            String model,
            EncoderConfig config,
            EncoderFamily family,
            TextSettings wanted,
            @Nullable SentenceModules modules,
            Map<?, ?> settings,
            boolean windows,
            int marks) {
        // Positions up to that of the padding token are not used for texts.
        int reserved = family.positionsAfterPadding() ? config.index("pad_token_id", 1) + 1 : 0;
        int most = config.index("max_position_embeddings", 512) - reserved;
        int configured = most;
        if (settings.get("model_max_length") instanceof Long n && n > 0 && n < most) {
            configured = n.intValue();
        }
        if (modules != null && modules.maxLength() > 0) {
            configured = Math.min(most, modules.maxLength());
        }
        if (windows) {
            configured = Math.min(configured, USUAL_WINDOW);
        }
        int length = wanted.maxLength() > 0 ? wanted.maxLength() : configured;
        if (length > most || length <= marks) {
            throw ServingException.invalidArgument(
                    "model '" + model + "' has max_length " + length + " (expected: more than the " + marks
                            + " tokens that mark begin and end, and at most " + most + ", its positions)",
                    "set the parameter max_length");
        }
        return length;
    }

    /** The number of a token that the configuration names, as a text or an object; -1 when there is none. */
    private long id(Map<?, ?> settings, String key) {
        Object token = settings.get(key) instanceof Map<?, ?> map ? map.get("content") : settings.get(key);
        return token instanceof String text ? tokenizer.idOf(text) : -1;
    }

    /** What goes before a text, and its case, as the folder says. */
    String prepared(String text) {
        String whole = prompt.isEmpty() ? text : prompt + text;
        return lowerCase ? whole.toLowerCase(Locale.ROOT) : whole;
    }

    /** @throws ServingException INVALID_ARGUMENT for a text that cannot be converted or truncated */
    Encoding encode(String text, @Nullable String pair) {
        try {
            return tokenizer.encodeWithPlaces(text, pair, special);
        } catch (RuntimeException e) {
            throw ServingException.invalidArgument(
                    "the tokenizer rejected the text: " + e.getMessage(),
                    pair == null ? null : "the first text of a pair must be shorter than max_length");
        }
    }

    /**
     * Reads tokens that are given by their numbers.
     *
     * @throws ServingException INVALID_ARGUMENT for a text that is not numbers of this vocabulary, or has more than the model takes
     */
    Encoding tokens(String text) {
        String[] parts = text.strip().split(" +", -1);
        if (parts.length > most) {
            throw ServingException.invalidArgument(
                    "there are " + parts.length + " tokens (expected: at most " + most + ")",
                    "send fewer, or the text itself, which is truncated");
        }
        long[] ids = new long[parts.length];
        List<String> names = new ArrayList<>();
        for (int i = 0; i < ids.length; i++) {
            ids[i] = number(parts[i]);
            names.add("");
        }
        long[] none = new long[ids.length];
        return new Encoding(ids, none, names, none, none, new int[ids.length], new int[ids.length]);
    }

    private long number(String text) {
        long id = -1;
        try {
            id = Long.parseLong(text);
        } catch (NumberFormatException e) {
            // Rejected below.
        }
        if (id < 0 || id >= vocabulary) {
            throw ServingException.invalidArgument(
                    "token '" + (text.length() > 40 ? text.substring(0, 40) + "…" : text)
                            + "' is not in the vocabulary (expected: whole numbers from 0 to " + (vocabulary - 1) + ")",
                    "send the text itself; tokens of another model's vocabulary have other numbers");
        }
        return id;
    }

    /**
     * The windows over a text that may answer a question.
     *
     * @throws ServingException INVALID_ARGUMENT for texts that cannot be converted or divided
     */
    List<Encoding> windows(String text, String pair) {
        return TextWindows.cut(encode(text, pair), length, stride);
    }

    /** Whether pairs of texts are divided into windows, not truncated. */
    boolean windows() {
        return length > 0;
    }

    NativeTokenizer tokenizer() {
        return tokenizer;
    }

    /** The number of the padding token. */
    long padding() {
        return padding;
    }

    /** The number of the mask token; -1 when there is none. */
    long mask() {
        return mask;
    }

    /** The number of the token before a text; -1 when there is none. */
    long first() {
        return first;
    }

    /** The number of the token for what the vocabulary lacks; -1 when there is none. */
    long unknown() {
        return unknown;
    }

    /** Whether the tokens within a word have a prefix. */
    boolean prefixes() {
        return prefixes;
    }

    /** Whether the tokens at the beginning of a word have SentencePiece's mark for a space. */
    boolean marks() {
        return marks;
    }

    /** The size of the file, an estimate of the memory that the vocabulary takes. */
    long bytes() {
        return bytes;
    }

    @Override
    public void close() {
        tokenizer.close();
    }
}
