// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface;

import io.nereid.backends.huggingface.graph.EncoderConfig;
import java.util.HashMap;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The tokenizers of transformers that a folder may have without a {@code tokenizer.json}, with their special tokens.
 *
 * <p>Source: the documentation of the classes in transformers.
 */
enum TokenizerKind {
    /** WordPiece with BERT's marks. */
    BERT(null, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]", false),
    /** WordPiece with RoBERTa's marks. */
    MPNET("<s>", "[UNK]", "</s>", "<pad>", "<s>", "<mask>", true),
    /** Byte-level BPE. */
    ROBERTA("<s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>", true),
    /** Byte-level BPE with BERT's marks. */
    MODERNBERT(null, "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]", true),
    /** SentencePiece with its first numbers in fairseq's order. */
    XLM_ROBERTA("<s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>", true),
    /** SentencePiece behind five tokens of fairseq. */
    CAMEMBERT("<s>", "<unk>", "</s>", "<pad>", "<s>", "<mask>", true),
    /** SentencePiece, by default in lower case without accents. */
    ALBERT("[CLS]", "<unk>", "[SEP]", "<pad>", "[CLS]", "[MASK]", true),
    /** SentencePiece; versions 2 and 3 of DeBERTa. */
    DEBERTA("[CLS]", "[UNK]", "[SEP]", "[PAD]", "[CLS]", "[MASK]", false);

    private static final Map<String, TokenizerKind> NAMES = Map.ofEntries(
            Map.entry("BertTokenizer", BERT),
            Map.entry("DistilBertTokenizer", BERT),
            Map.entry("ElectraTokenizer", BERT),
            Map.entry("MPNetTokenizer", MPNET),
            Map.entry("RobertaTokenizer", ROBERTA),
            Map.entry("XLMRobertaTokenizer", XLM_ROBERTA),
            Map.entry("CamembertTokenizer", CAMEMBERT),
            Map.entry("AlbertTokenizer", ALBERT),
            Map.entry("DebertaV2Tokenizer", DEBERTA),
            Map.entry("bert", BERT),
            Map.entry("distilbert", BERT),
            Map.entry("electra", BERT),
            Map.entry("mpnet", MPNET),
            Map.entry("roberta", ROBERTA),
            Map.entry("modernbert", MODERNBERT),
            Map.entry("xlm-roberta", XLM_ROBERTA),
            Map.entry("camembert", CAMEMBERT),
            Map.entry("albert", ALBERT),
            Map.entry("deberta-v2", DEBERTA));

    private final @Nullable String first;
    private final String unknown;
    private final String separator;
    private final String padding;
    private final String begin;
    private final String mask;
    /** Whether the mask token takes the space before it along. */
    private final boolean maskTakesSpace;

    TokenizerKind(
            @Nullable String first,
            String unknown,
            String separator,
            String padding,
            String begin,
            String mask,
            boolean maskTakesSpace) {
        this.first = first;
        this.unknown = unknown;
        this.separator = separator;
        this.padding = padding;
        this.begin = begin;
        this.mask = mask;
        this.maskTakesSpace = maskTakesSpace;
    }

    /**
     * The kind that the class of {@code tokenizer_config.json} has, or that of the model where no class of this list is named.
     *
     * @param settings the fields of {@code tokenizer_config.json}
     * @return null for one that is not known
     */
    static @Nullable TokenizerKind of(EncoderConfig config, Map<?, ?> settings) {
        String model = config.text("model_type", "");
        if (!(settings.get("tokenizer_class") instanceof String name)) {
            return NAMES.get(model);
        }
        String named = name.replaceFirst("Fast$", "");
        boolean general = named.equals("PreTrainedTokenizer") || named.equals("TokenizersBackend");
        return NAMES.get(general ? model : named);
    }

    /** The special tokens where the folder does not say it, by their keys in {@code tokenizer_config.json}. */
    Map<String, String> usual() {
        Map<String, String> tokens = new HashMap<>();
        if (first != null) {
            tokens.put("bos_token", first);
            tokens.put("eos_token", separator);
        }
        tokens.put("unk_token", unknown);
        tokens.put("sep_token", separator);
        tokens.put("pad_token", padding);
        tokens.put("cls_token", begin);
        tokens.put("mask_token", mask);
        return tokens;
    }

    boolean maskTakesSpace() {
        return maskTakesSpace;
    }

    boolean sentencePiece() {
        return this == XLM_ROBERTA || this == CAMEMBERT || this == ALBERT || this == DEBERTA;
    }

    boolean wordPiece() {
        return this == BERT || this == MPNET;
    }

    /** Whether a second text has the type 1. */
    boolean hasTypes() {
        return this == BERT || this == MODERNBERT || this == ALBERT || this == DEBERTA;
    }
}
