// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.graph;

import com.google.errorprone.annotations.Immutable;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The families of encoders, with the names of their weights. The names are those of the modules in transformers'
 * {@code modeling_*.py}.
 */
public enum EncoderFamily {
    BERT("bert", "encoder.layer.", Names.BERT, false),
    ROBERTA("roberta", "encoder.layer.", Names.BERT, true),
    ELECTRA("electra", "encoder.layer.", Names.BERT, false),
    DISTILBERT(
            "distilbert",
            "transformer.layer.",
            new Names(
                    "attention.q_lin",
                    "attention.k_lin",
                    "attention.v_lin",
                    "attention.out_lin",
                    "sa_layer_norm",
                    "ffn.lin1",
                    "ffn.lin2",
                    "output_layer_norm"),
            false),
    MPNET(
            "mpnet",
            "encoder.layer.",
            new Names(
                    "attention.attn.q",
                    "attention.attn.k",
                    "attention.attn.v",
                    "attention.attn.o",
                    "attention.LayerNorm",
                    "intermediate.dense",
                    "output.dense",
                    "output.LayerNorm"),
            true),
    ALBERT(
            "albert",
            "encoder.albert_layer_groups.",
            new Names(
                    "attention.query",
                    "attention.key",
                    "attention.value",
                    "attention.dense",
                    "attention.LayerNorm",
                    "ffn",
                    "ffn_output",
                    "full_layer_layer_norm"),
            false),
    DEBERTA(
            "deberta",
            "encoder.layer.",
            new Names(
                    "attention.self.query_proj",
                    "attention.self.key_proj",
                    "attention.self.value_proj",
                    "attention.output.dense",
                    "attention.output.LayerNorm",
                    "intermediate.dense",
                    "output.dense",
                    "output.LayerNorm"),
            false),
    MODERNBERT("model", "layers.", Names.BERT, false);

    private static final Map<String, EncoderFamily> BY_ARCHITECTURE = Map.ofEntries(
            Map.entry("Bert", BERT),
            Map.entry("Roberta", ROBERTA),
            Map.entry("XLMRoberta", ROBERTA),
            Map.entry("Camembert", ROBERTA),
            Map.entry("DistilBert", DISTILBERT),
            Map.entry("MPNet", MPNET),
            Map.entry("Albert", ALBERT),
            Map.entry("Electra", ELECTRA),
            Map.entry("DebertaV2", DEBERTA),
            Map.entry("ModernBert", MODERNBERT));

    /** Names within a layer. */
    @Immutable
    record Names(
            String query,
            String key,
            String value,
            String attentionOutput,
            String attentionNorm,
            String inner,
            String outer,
            String outputNorm) {
        static final Names BERT = new Names(
                "attention.self.query",
                "attention.self.key",
                "attention.self.value",
                "attention.output.dense",
                "attention.output.LayerNorm",
                "intermediate.dense",
                "output.dense",
                "output.LayerNorm");
    }

    private final String prefix;
    private final String layers;
    private final Names names;
    private final boolean positionsAfterPadding;

    EncoderFamily(String prefix, String layers, Names names, boolean positionsAfterPadding) {
        this.prefix = prefix;
        this.layers = layers;
        this.names = names;
        this.positionsAfterPadding = positionsAfterPadding;
    }

    /** The family of an architecture such as {@code BertForMaskedLM}; null for one that this server does not run. */
    public static @Nullable EncoderFamily of(String architecture) {
        int end = architecture.indexOf("For");
        String family = end >= 0
                ? architecture.substring(0, end)
                : architecture.endsWith("Model")
                        ? architecture.substring(0, architecture.length() - "Model".length())
                        : architecture;
        return BY_ARCHITECTURE.get(family);
    }

    /** Beginnings of the architectures that this server runs. */
    public static List<String> architectures() {
        return BY_ARCHITECTURE.keySet().stream().sorted().toList();
    }

    String prefix() {
        return prefix;
    }

    String layers() {
        return layers;
    }

    Names names() {
        return names;
    }

    /** Whether the positions are counted from the one after the number of the padding token, over the tokens that are not padding. */
    public boolean positionsAfterPadding() {
        return positionsAfterPadding;
    }
}
