// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.graph;

import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/**
 * Adds an encoder to a graph: token ids to hidden states. The states are rows, {@code [batch · tokens, hidden]}, except in
 * attention. Confined to one thread.
 */
final class EncoderStack {
    static final String IDS = "input_ids";
    static final String MASK = "attention_mask";
    static final String TYPES = "token_type_ids";

    static final int MOST_HIDDEN = 1 << 16;
    private static final int MOST_LAYERS = 1000;
    private static final int MOST_POSITIONS = 1 << 20;
    private static final int MOST_VOCABULARY = 1 << 24;
    /** What BERT's, DistilBERT's and MPNet's code has where the configuration does not say it. */
    private static final double EPSILON = 1e-12;

    private static final int BUCKETS = 32;
    private static final double MOST_DISTANCE = 128;

    final EncoderGraph graph;
    final EncoderWeights weights;
    final EncoderConfig config;
    final EncoderFamily family;
    final int hidden;
    final int heads;
    final int layers;
    final int inner;
    final int embedding;
    final int vocabulary;
    final double epsilon;
    final String activation;
    /** The shape {@code [batch, tokens, -1]}, by which rows become three-dimensional. */
    private String cube = "";
    /** The mask as INT32, {@code [batch, tokens]}. */
    private String mask = "";

    private String bias = "";

    EncoderStack(EncoderGraph graph, EncoderWeights weights, EncoderConfig config, EncoderFamily family) {
        this.graph = graph;
        this.weights = weights;
        this.config = config;
        this.family = family;
        boolean distil = family == EncoderFamily.DISTILBERT;
        hidden = config.size(distil ? "dim" : "hidden_size", MOST_HIDDEN);
        heads = config.size(distil ? "n_heads" : "num_attention_heads", MOST_HIDDEN);
        layers = config.size(distil ? "n_layers" : "num_hidden_layers", MOST_LAYERS);
        inner = config.size(distil ? "hidden_dim" : "intermediate_size", 8 * MOST_HIDDEN);
        vocabulary = config.size("vocab_size", MOST_VOCABULARY);
        embedding = switch (family) {
            case ALBERT, ELECTRA -> config.size("embedding_size", MOST_HIDDEN);
            case DEBERTA -> config.size("embedding_size", MOST_HIDDEN, hidden);
            default -> hidden;
        };
        epsilon = distil
                ? EPSILON
                : config.number(family == EncoderFamily.MODERNBERT ? "norm_eps" : "layer_norm_eps", EPSILON);
        activation = config.text(
                distil ? "activation" : family == EncoderFamily.MODERNBERT ? "hidden_activation" : "hidden_act",
                "gelu");
        if (hidden % heads != 0) {
            throw ServingException.invalidArgument(
                    "config.json has hidden_size " + hidden + " and " + heads
                            + " attention heads (expected: a multiple)",
                    "copy the config.json that belongs to the weights");
        }
        String positions = config.text("position_embedding_type", "absolute");
        if (!positions.equals("absolute") && family != EncoderFamily.MODERNBERT) {
            throw ServingException.invalidArgument(
                    "config.json has position_embedding_type '" + positions + "' (expected: absolute)",
                    "export the model to ONNX with optimum-cli");
        }
        if (config.flag("is_decoder", false) || config.flag("add_cross_attention", false)) {
            throw ServingException.invalidArgument(
                    "config.json has is_decoder or add_cross_attention: the model is a decoder (expected: an encoder)",
                    "export the model to ONNX with optimum-cli");
        }
    }

    /** Adds the inputs and the whole encoder, and returns the last hidden states as rows. */
    String build() {
        graph.input(IDS, 2);
        graph.input(MASK, 2);
        mask = graph.node("Cast", "", Map.of("to", 6L), MASK);
        cube = graph.node("Concat", "", Map.of("axis", 0L), graph.node("Shape", IDS), graph.longs(-1));
        if (family == EncoderFamily.MODERNBERT) {
            return new ModernEncoder(this).build();
        }
        if (family == EncoderFamily.DEBERTA) {
            return new DisentangledEncoder(this).build();
        }
        String x = embeddings();
        if (family == EncoderFamily.MPNET) {
            bias = relativePositions();
        }
        for (int i = 0; i < layers; i++) {
            if (family == EncoderFamily.ALBERT) {
                x = albertGroup(x, i);
            } else {
                x = layer(x, weights.base(family.layers() + i + "."));
            }
        }
        return x;
    }

    private String albertGroup(String x, int layer) {
        int groups = config.size("num_hidden_groups", MOST_LAYERS, 1);
        int inside = config.size("inner_group_num", MOST_LAYERS, 1);
        // As transformers' code: int(i / (layers / groups)).
        int group = (int) (layer / (layers / (double) groups));
        String y = x;
        for (int i = 0; i < inside; i++) {
            y = layer(y, weights.base(family.layers() + group + ".albert_layers." + i + "."));
        }
        return y;
    }

    /** The rows with the shape {@code [batch, tokens, width]}. */
    String cube(String rows) {
        return graph.node("Reshape", rows, cube);
    }

    /** The shape {@code [batch, tokens, -1]}. */
    String cubeShape() {
        return cube;
    }

    /** A three-dimensional value as rows of this width. */
    String rows(String x, long width) {
        return graph.node("Reshape", x, graph.longs(-1, width));
    }

    private String embeddings() {
        String prefix = weights.base("embeddings.");
        String x = graph.node("Gather", weights.get(prefix + "word_embeddings.weight", vocabulary, embedding), IDS);
        int positions = config.size("max_position_embeddings", MOST_POSITIONS);
        x = graph.node(
                "Add",
                x,
                graph.node(
                        "Gather",
                        weights.get(prefix + "position_embeddings.weight", positions, embedding),
                        positions()));
        if (family != EncoderFamily.DISTILBERT && family != EncoderFamily.MPNET) {
            int types = config.size("type_vocab_size", MOST_VOCABULARY, 2);
            graph.input(TYPES, 2);
            String table = weights.get(prefix + "token_type_embeddings.weight", types, embedding);
            x = graph.node("Add", x, graph.node("Gather", table, TYPES));
        }
        x = rows(weights.norm(x, prefix + "LayerNorm", embedding, epsilon), embedding);
        if (family == EncoderFamily.ALBERT) {
            x = weights.linear(x, weights.base("encoder.embedding_hidden_mapping_in"), embedding, hidden);
        } else if (family == EncoderFamily.ELECTRA && embedding != hidden) {
            x = weights.linear(x, weights.base("embeddings_project"), embedding, hidden);
        }
        return x;
    }

    private String positions() {
        if (!family.positionsAfterPadding()) {
            return range();
        }
        // The code of MPNet has 1 whatever the configuration says.
        long padding = family == EncoderFamily.MPNET ? 1 : config.index("pad_token_id", 1);
        String present = graph.node(
                "Cast", "", Map.of("to", 7L), graph.node("Not", graph.node("Equal", IDS, graph.number(padding))));
        String counted = graph.node("Mul", graph.node("CumSum", present, graph.number(1)), present);
        return graph.node("Add", counted, graph.number(padding));
    }

    /** The numbers from 0 to that of tokens less one. */
    String range() {
        String tokens = graph.node("Gather", graph.node("Shape", IDS), graph.number(1));
        return graph.node("Range", graph.number(0), tokens, graph.number(1));
    }

    /** The differences of positions, key less query: {@code [tokens, tokens]} of INT64. */
    String distances() {
        String range = range();
        return graph.node(
                "Sub", graph.node("Unsqueeze", range, graph.longs(0)), graph.node("Unsqueeze", range, graph.longs(1)));
    }

    /**
     * MPNet's bias of attention by distance, {@code [1, heads, tokens, tokens]}. The buckets are those of T5 (Raffel et al. 2020,
     * section 2.1): a bucket each for short distances, then logarithmic ones, and one half for each direction. Computed by a table of
     * all distances, since only so many differ.
     */
    private String relativePositions() {
        int positions = config.size("max_position_embeddings", MOST_POSITIONS);
        // Its code has 32 buckets, whatever size the table of the configuration has.
        int rows = config.size("relative_attention_num_buckets", MOST_VOCABULARY, BUCKETS);
        if (rows < BUCKETS) {
            throw config.wrong("relative_attention_num_buckets", "32 or more");
        }
        long[] table = new long[2 * positions + 1];
        for (int i = 0; i < table.length; i++) {
            table[i] = bucket(i - positions);
        }
        String index = graph.node("Add", distances(), graph.number(positions));
        String buckets = graph.node("Gather", graph.longs(table), index);
        String values = graph.node(
                "Gather", weights.get(weights.base("encoder.relative_attention_bias.weight"), rows, heads), buckets);
        return graph.node(
                "Unsqueeze", graph.node("Transpose", "", Map.of("perm", new long[] {2, 0, 1}), values), graph.longs(0));
    }

    private static long bucket(int distance) {
        int half = BUCKETS / 2;
        int exact = half / 2;
        int before = distance > 0 ? half : 0;
        int n = Math.abs(distance);
        if (n < exact) {
            return before + (long) n;
        }
        // In single precision, as the original computes it, because the result is truncated.
        float scaled = (float) Math.log((float) n / exact) / (float) Math.log(MOST_DISTANCE / exact) * (half - exact);
        return before + Math.min(exact + (long) scaled, half - 1L);
    }

    private String layer(String x, String prefix) {
        EncoderFamily.Names names = family.names();
        List<String> in = new ArrayList<>();
        for (String projection : List.of(names.query(), names.key(), names.value())) {
            in.add(cube(weights.linear(x, prefix + projection, hidden, hidden)));
        }
        return afterAttention(x, rows(attention(in, bias), hidden), prefix);
    }

    /** What follows attention in a layer: its projection and two linear layers, each added to what it is computed from. */
    String afterAttention(String x, String attended, String prefix) {
        EncoderFamily.Names names = family.names();
        String y = weights.normOfSum(
                weights.linear(attended, prefix + names.attentionOutput(), hidden, hidden),
                x,
                prefix + names.attentionNorm(),
                hidden,
                epsilon);
        String between = Activations.apply(graph, activation, weights.linear(y, prefix + names.inner(), hidden, inner));
        return weights.normOfSum(
                weights.linear(between, prefix + names.outer(), inner, hidden),
                y,
                prefix + names.outputNorm(),
                hidden,
                epsilon);
    }

    /**
     * Attention of all heads.
     *
     * @param in query, key and value, {@code [batch, tokens, hidden]}
     * @param added what is added to the scores, {@code [1, heads or 1, tokens, tokens]}; empty for nothing
     */
    String attention(List<String> in, String added) {
        return graph.node(
                "MultiHeadAttention",
                EncoderGraph.CONTRIB,
                Map.of("num_heads", (long) heads, "mask_filter_value", -Float.MAX_VALUE),
                in.get(0),
                in.get(1),
                in.get(2),
                "",
                mask,
                added);
    }
}
