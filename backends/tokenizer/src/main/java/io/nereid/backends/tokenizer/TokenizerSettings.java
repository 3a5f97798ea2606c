// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.tokenizer;

import io.nereid.base.NameSuggestions;
import io.nereid.base.ServingException;
import io.nereid.spi.config.DynamicBatching;
import io.nereid.spi.config.ModelConfig;
import io.nereid.spi.config.parameters.LatencyObjective;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/** The parameters in a tokenizer's model configuration; see {@link TokenizerBackend}. Immutable. */
record TokenizerSettings(int maxLength, String truncation, String padding, int multiple, long padId, boolean special) {
    private static final String MAX_LENGTH = "max_length";
    private static final String TRUNCATION = "truncation";
    private static final String PADDING = "padding";
    private static final String MULTIPLE = "pad_to_multiple_of";
    private static final String PAD_ID = "pad_id";
    private static final String SPECIAL = "add_special_tokens";
    private static final List<String> KNOWN = List.of(MAX_LENGTH, TRUNCATION, PADDING, MULTIPLE, PAD_ID, SPECIAL);
    private static final int MOST = 1 << 20;

    /** Common names of padding tokens, for files that do not configure padding; the first that the vocabulary has. */
    private static final List<String> PAD_TOKENS = List.of("[PAD]", "<pad>", "<|pad|>", "<PAD>", "<|endoftext|>");

    /** @throws ServingException INVALID_ARGUMENT for an unknown parameter or an invalid value */
    static TokenizerSettings read(ModelConfig config) {
        Map<String, String> p = config.parameters();
        for (String key : p.keySet()) {
            // The scheduler reads these two.
            if (!KNOWN.contains(key)
                    && !key.equals(DynamicBatching.ANTICIPATION)
                    && !key.equals(LatencyObjective.PARAMETER)) {
                throw ServingException.invalidArgument(
                        "unknown parameter '" + key + "' of model '" + config.name() + "' (the tokenizer backend knows "
                                + String.join(", ", KNOWN) + ")",
                        NameSuggestions.didYouMean(key, KNOWN, "remove it"));
            }
        }
        return new TokenizerSettings(
                (int) number(config, MAX_LENGTH, 0, 1, MOST),
                choice(config, TRUNCATION, "", "true", "false", "longest_first", "only_first", "only_second"),
                choice(config, PADDING, "longest", "longest", "max_length", "true", "false"),
                (int) number(config, MULTIPLE, 1, 1, MOST),
                number(config, PAD_ID, -1, 0, Integer.MAX_VALUE),
                choice(config, SPECIAL, "true", "true", "false").equals("true"));
    }

    private static String choice(ModelConfig config, String key, String otherwise, String... allowed) {
        String text = config.parameters().getOrDefault(key, otherwise).strip().toLowerCase(Locale.ROOT);
        if (!text.equals(otherwise) && !List.of(allowed).contains(text)) {
            throw wrong(config, key, String.join(", ", allowed));
        }
        return text;
    }

    private static long number(ModelConfig config, String key, long otherwise, long least, long most) {
        String text = config.parameters().get(key);
        if (text == null) {
            return otherwise;
        }
        try {
            long value = Long.parseLong(text.strip());
            if (value >= least && value <= most) {
                return value;
            }
        } catch (NumberFormatException e) {
            // Rejected below.
        }
        throw wrong(config, key, "a whole number from " + least + " to " + most);
    }

    private static ServingException wrong(ModelConfig config, String key, String expected) {
        return ServingException.invalidArgument(
                "model '" + config.name() + "' has " + key + " '"
                        + config.parameters().get(key) + "' (expected: " + expected + ")",
                "correct the parameter");
    }

    /**
     * Configures truncation of a new tokenizer and returns the padding. The tokenizer itself does not pad, because it
     * encodes one row at a time and does not know the longest row of the batch.
     *
     * @throws ServingException INVALID_ARGUMENT when the tokenizer does not support the parameters
     */
    PaddingStrategy applyTo(String model, NativeTokenizer tokenizer, boolean pairs) {
        int length = maxLength > 0 ? maxLength : tokenizer.maxLength();
        String second = pairs ? "" : null;
        PaddingStrategy pads = padding(tokenizer, second);
        tokenizer.neverPad();
        boolean truncate = truncation.isEmpty() ? length > 0 : !truncation.equals("false");
        int marks = tokenizer.encode("", second, special).ids().length;
        if (truncate && length <= marks) {
            throw ServingException.invalidArgument(
                    length <= 0
                            ? "model '" + model + "' truncates to no length"
                            : "model '" + model + "' has max_length " + length + ", of which " + marks
                                    + " tokens mark begin and end (expected: more)",
                    "set the parameter max_length");
        }
        if (!truncate) {
            tokenizer.neverTruncate();
        } else if (maxLength > 0 || !truncation.isEmpty()) {
            tokenizer.truncate(
                    length,
                    truncation.isEmpty() || truncation.equals("true")
                            ? "LONGEST_FIRST"
                            : truncation.toUpperCase(Locale.ROOT));
        }
        if (padding.equals("max_length") && length <= 0) {
            throw ServingException.invalidArgument(
                    "model '" + model + "' pads to no length", "set the parameter max_length");
        }
        return pads.to(padding.equals("false") ? -1 : padding.equals("max_length") ? length : 0);
    }

    /**
     * The padding token and side that the file configures. The native library does not report them, so an empty text is
     * padded by one token and the result is inspected.
     */
    private PaddingStrategy padding(NativeTokenizer tokenizer, @Nullable String second) {
        if (!tokenizer.pads()) {
            return new PaddingStrategy(0, multiple, false, padId < 0 ? knownPad(tokenizer) : padId, 0, special);
        }
        int marks = (int)
                Arrays.stream(tokenizer.encode("", second, special).mask()).sum();
        tokenizer.padTo(marks + 1);
        NativeTokenizer.Tokens padded = tokenizer.encode("", second, special);
        boolean left = marks > 0 && padded.mask()[0] == 0;
        int at = left ? 0 : padded.ids().length - 1;
        return new PaddingStrategy(
                0, multiple, left, padId < 0 ? padded.ids()[at] : padId, padded.types()[at], special);
    }

    private static long knownPad(NativeTokenizer tokenizer) {
        for (String token : PAD_TOKENS) {
            long id = tokenizer.idOf(token);
            if (id >= 0) {
                return id;
            }
        }
        return 0;
    }
}
