// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.graph;

import java.util.List;
import java.util.Map;

/**
 * ModernBERT's layers (Warner et al. 2024): normalisation before each part, rotary positions, attention within a window in most
 * layers, gated activation. Confined to one thread.
 */
final class ModernEncoder {
    private static final int MOST_POSITIONS = 1 << 18;
    private static final double GLOBAL_THETA = 160_000;
    private static final double LOCAL_THETA = 10_000;

    private final EncoderStack stack;
    private final EncoderGraph graph;
    private final EncoderWeights weights;
    private final EncoderConfig config;

    ModernEncoder(EncoderStack stack) {
        this.stack = stack;
        this.graph = stack.graph;
        this.weights = stack.weights;
        this.config = stack.config;
    }

    private record Rotation(String cos, String sin) {}

    String build() {
        int hidden = stack.hidden;
        int every = config.size("global_attn_every_n_layers", 1000, 3);
        String x = graph.node(
                "Gather",
                weights.get(weights.base("embeddings.tok_embeddings.weight"), stack.vocabulary, hidden),
                EncoderStack.IDS);
        x = stack.rows(weights.norm(x, weights.base("embeddings.norm"), hidden, stack.epsilon), hidden);
        Rotation wide = rotation(theta("full_attention", "global_rope_theta", GLOBAL_THETA));
        Rotation narrow = rotation(theta("sliding_attention", "local_rope_theta", LOCAL_THETA));
        String window = window();
        for (int i = 0; i < stack.layers; i++) {
            boolean local = config.value("layer_types") instanceof List<?> types && i < types.size()
                    ? "sliding_attention".equals(types.get(i))
                    : i % every != 0;
            x = layer(x, i, local ? narrow : wide, local ? window : "");
        }
        return weights.norm(x, weights.base("final_norm"), hidden, stack.epsilon);
    }

    private double theta(String kind, String older, double otherwise) {
        if (config.value("rope_parameters") instanceof Map<?, ?> kinds && kinds.get(kind) instanceof Map<?, ?> rope) {
            if (rope.get("rope_type") instanceof String type && !type.equals("default")) {
                throw config.wrong("rope_parameters", "the rope_type default");
            }
            return rope.get("rope_theta") instanceof Number n ? n.doubleValue() : otherwise;
        }
        return config.number(older, otherwise);
    }

    /** Cosines and sines of all positions (Su et al. 2021), a column for each pair of elements of a head. */
    private Rotation rotation(double theta) {
        int positions = config.size("max_position_embeddings", MOST_POSITIONS);
        int pairs = stack.hidden / stack.heads / 2;
        float[] cos = new float[positions * pairs];
        float[] sin = new float[positions * pairs];
        for (int p = 0; p < pairs; p++) {
            float frequency = (float) (1.0 / Math.pow(theta, 2.0 * p / (2 * pairs)));
            for (int i = 0; i < positions; i++) {
                float angle = i * frequency;
                cos[i * pairs + p] = (float) Math.cos(angle);
                sin[i * pairs + p] = (float) Math.sin(angle);
            }
        }
        long[] dims = {positions, pairs};
        return new Rotation(graph.floats(dims, cos), graph.floats(dims, sin));
    }

    /** What keeps attention within the window: {@code [1, 1, tokens, tokens]}. */
    private String window() {
        long half = config.size("local_attention", MOST_POSITIONS, 128) / 2;
        String outside = graph.node("Greater", graph.node("Abs", stack.distances()), graph.number(half));
        String added = graph.node("Where", outside, graph.scalar(-Float.MAX_VALUE), graph.scalar(0));
        return graph.node("Unsqueeze", added, graph.longs(0, 1));
    }

    private String layer(String x, int index, Rotation rotation, String window) {
        int hidden = stack.hidden;
        String prefix = weights.base("layers." + index + ".");
        // The first layer's input has just been normalised.
        String normal = index == 0 ? x : weights.norm(x, prefix + "attn_norm", hidden, stack.epsilon);
        String all = stack.cube(weights.linear(normal, prefix + "attn.Wqkv", hidden, 3L * hidden, true));
        String positions = graph.node("Expand", stack.range(), graph.node("Shape", EncoderStack.IDS));
        List<String> in = List.of(
                rotated(part(all, 0, hidden), positions, rotation),
                rotated(part(all, 1, hidden), positions, rotation),
                part(all, 2, hidden));
        String attended = stack.rows(stack.attention(in, window), hidden);
        String y = graph.node("Add", x, weights.linear(attended, prefix + "attn.Wo", hidden, hidden, true));
        normal = weights.norm(y, prefix + "mlp_norm", hidden, stack.epsilon);
        String both = weights.linear(normal, prefix + "mlp.Wi", hidden, 2L * stack.inner, true);
        String gated = graph.node(
                "Mul",
                Activations.apply(graph, stack.activation, columns(both, 0, stack.inner)),
                columns(both, 1, stack.inner));
        return graph.node("Add", y, weights.linear(gated, prefix + "mlp.Wo", stack.inner, hidden, true));
    }

    private String rotated(String x, String positions, Rotation rotation) {
        return graph.node(
                "RotaryEmbedding",
                EncoderGraph.CONTRIB,
                Map.of("num_heads", (long) stack.heads),
                x,
                positions,
                rotation.cos,
                rotation.sin);
    }

    private String part(String x, long index, long width) {
        return slice(x, index, width, 2);
    }

    private String columns(String x, long index, long width) {
        return slice(x, index, width, 1);
    }

    private String slice(String x, long index, long width, long axis) {
        return graph.node("Slice", x, graph.longs(index * width), graph.longs((index + 1) * width), graph.longs(axis));
    }
}
