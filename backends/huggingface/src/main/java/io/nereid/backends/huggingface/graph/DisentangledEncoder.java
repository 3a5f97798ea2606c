// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.graph;

import io.nereid.base.ServingException;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * The layers of DeBERTa in its second and third version (He et al. 2021): attention whose scores are the sum of content with content,
 * content with distance and distance with content. Distances share logarithmic buckets. Confined to one thread.
 *
 * <p>A run of {@code n} tokens has {@code 2n - 1} distances. The scores by distance are products with the vectors of these only,
 * {@code [n, 2n]} with one column too many, and their rows are then moved against each other: row {@code i} begins {@code i} columns
 * earlier than the first one. In memory these are {@code n} rows of {@code 2n - 1} numbers, of which the first {@code n} are used, so
 * that nothing is gathered.
 */
final class DisentangledEncoder {
    private static final int MOST_POSITIONS = 1 << 16;
    private static final int MOST_KERNEL = 101;
    private static final String ATTENTION = "attention.self.";

    private final EncoderStack stack;
    private final EncoderGraph graph;
    private final EncoderWeights weights;
    private final EncoderConfig config;
    private final int hidden;
    private final List<String> kinds;
    /** By which the scores of a layer are multiplied, as their parts are added. */
    private final float scale;

    private @Nullable Distances distances;

    DisentangledEncoder(EncoderStack stack) {
        this.stack = stack;
        this.graph = stack.graph;
        this.weights = stack.weights;
        this.config = stack.config;
        this.hidden = stack.hidden;
        this.kinds = kinds();
        int size = config.size("attention_head_size", EncoderStack.MOST_HIDDEN, hidden / stack.heads);
        if (size * stack.heads != hidden) {
            throw config.wrong("attention_head_size", "hidden_size divided by num_attention_heads");
        }
        int parts = 1 + (kinds.contains("c2p") ? 1 : 0) + (kinds.contains("p2c") ? 1 : 0);
        this.scale = (float) (1 / Math.sqrt((double) size * parts));
    }

    /**
     * What the layers need for the parts of the scores by distance.
     *
     * @param vectors the vectors of the buckets, {@code [buckets, hidden]}
     * @param falling the buckets of the distances query less key, from the longest on, {@code [2 · tokens]}
     * @param rising the same from the shortest on
     * @param from the first number that is used of a matrix of scores
     * @param to the one after the last
     * @param shape that of the scores, {@code [batch, heads, tokens, 2 · tokens - 1]}
     * @param tokens the number of tokens
     */
    private record Distances(
            String vectors, String falling, String rising, String from, String to, String shape, String tokens) {}

    private List<String> kinds() {
        Object value = config.value("pos_att_type");
        if (value instanceof String text) {
            return Arrays.stream(text.toLowerCase(Locale.ROOT).split("\\|", -1))
                    .map(String::strip)
                    .toList();
        }
        if (value == null) {
            return List.of();
        }
        if (value instanceof List<?> list && list.stream().allMatch(String.class::isInstance)) {
            return list.stream().map(String::valueOf).toList();
        }
        throw config.wrong("pos_att_type", "a list of c2p and p2c");
    }

    String build() {
        String column =
                graph.node("Unsqueeze", graph.node("Cast", "", Map.of("to", 1L), EncoderStack.MASK), graph.longs(2));
        String embedded = graph.node("Mul", stack.cube(embeddings()), column);
        String mask = mask();
        distances = config.flag("relative_attention", false) && !kinds.isEmpty() ? distances() : null;
        String x = stack.rows(embedded, hidden);
        for (int i = 0; i < stack.layers; i++) {
            x = layer(x, weights.base(stack.family.layers() + i + "."), mask);
            if (i == 0 && config.index("conv_kernel_size", 0) > 0) {
                x = convolution(embedded, x, column);
            }
        }
        return x;
    }

    private String embeddings() {
        String prefix = weights.base("embeddings.");
        int width = stack.embedding;
        String x = graph.node(
                "Gather", weights.get(prefix + "word_embeddings.weight", stack.vocabulary, width), EncoderStack.IDS);
        if (config.flag("position_biased_input", true)) {
            String table = weights.get(prefix + "position_embeddings.weight", positions(), width);
            x = graph.node("Add", x, graph.node("Gather", table, stack.range()));
        }
        int types = config.index("type_vocab_size", 0);
        if (types > 0) {
            graph.input(EncoderStack.TYPES, 2);
            String table = weights.get(prefix + "token_type_embeddings.weight", types, width);
            x = graph.node("Add", x, graph.node("Gather", table, EncoderStack.TYPES));
        }
        x = stack.rows(x, width);
        if (width != hidden) {
            x = weights.gemm(x, weights.get(prefix + "embed_proj.weight", hidden, width), "");
        }
        return weights.norm(x, prefix + "LayerNorm", hidden, stack.epsilon);
    }

    private int positions() {
        return config.size("max_position_embeddings", MOST_POSITIONS, 512);
    }

    /** What is added to the scores so that tokens and padding do not attend to each other, {@code [batch, 1, tokens, tokens]}. */
    private String mask() {
        String kept = graph.node("Cast", "", Map.of("to", 9L), EncoderStack.MASK);
        String pairs = graph.node(
                "And",
                graph.node("Unsqueeze", kept, graph.longs(1, 3)),
                graph.node("Unsqueeze", kept, graph.longs(1, 2)));
        return graph.node("Where", pairs, graph.scalar(0), graph.scalar(-Float.MAX_VALUE));
    }

    private Distances distances() {
        int positions = positions();
        int buckets = buckets();
        int furthest = furthest();
        int span = buckets > 0 ? buckets : furthest;
        long[] rising = new long[2 * positions + 1];
        long[] falling = new long[rising.length];
        for (int i = 0; i < rising.length; i++) {
            int distance = i - positions;
            long bucket = buckets > 0 ? bucket(distance, buckets, furthest) : distance;
            rising[i] = Math.max(0, Math.min(2L * span - 1, bucket + span));
            falling[rising.length - 1 - i] = rising[i];
        }
        String vectors = weights.get(weights.base("encoder.rel_embeddings.weight"), 2L * span, hidden);
        if (List.of(config.text("norm_rel_ebd", "none")
                        .toLowerCase(Locale.ROOT)
                        .replace(" ", "")
                        .split("\\|", -1))
                .contains("layer_norm")) {
            vectors = weights.norm(vectors, weights.base("encoder.LayerNorm"), hidden, stack.epsilon);
        }
        String tokens = graph.node("Gather", graph.node("Shape", EncoderStack.IDS), graph.longs(1));
        String before = graph.node("Sub", graph.longs(positions + 1L), tokens);
        String after = graph.node("Add", graph.longs(positions + 1L), tokens);
        String last = graph.node("Sub", graph.node("Mul", tokens, graph.longs(2)), graph.longs(1));
        String from = graph.node("Sub", tokens, graph.longs(1));
        return new Distances(
                vectors,
                graph.node("Slice", graph.longs(falling), before, after),
                graph.node("Slice", graph.longs(rising), before, after),
                from,
                graph.node("Add", from, graph.node("Mul", tokens, last)),
                graph.node("Concat", "", Map.of("axis", 0L), graph.longs(0, 0, -1), last),
                tokens);
    }

    private int buckets() {
        Object value = config.value("position_buckets");
        if (value == null || (value instanceof Long n && n <= 0)) {
            return 0;
        }
        int buckets = config.size("position_buckets", MOST_POSITIONS);
        if (buckets < 4) {
            throw config.wrong("position_buckets", "4 or more, or -1 for none");
        }
        return buckets;
    }

    private int furthest() {
        Object value = config.value("max_relative_positions");
        return value instanceof Long n && n >= 1 ? config.size("max_relative_positions", MOST_POSITIONS) : positions();
    }

    /**
     * The bucket of a distance: its own up to half of the number of buckets, then logarithmic ones. In single precision, as the
     * original computes it, because the result is rounded up.
     */
    private static long bucket(int distance, int buckets, int furthest) {
        int half = buckets / 2;
        int size = Math.abs(distance);
        if (size <= half) {
            return distance;
        }
        if (furthest - 1 <= half) {
            // No distance within the positions is so long.
            return distance;
        }
        float most = (float) ((furthest - 1) / (double) half);
        float part = (float) Math.log((float) size / half) / (float) Math.log(most) * (half - 1);
        long scaled = (long) Math.ceil(part) + half;
        return distance < 0 ? -scaled : scaled;
    }

    private String layer(String x, String prefix, String mask) {
        EncoderFamily.Names names = stack.family.names();
        String query = stack.cube(weights.linear(x, prefix + names.query(), hidden, hidden));
        String key = stack.cube(weights.linear(x, prefix + names.key(), hidden, hidden));
        String value = stack.cube(weights.linear(x, prefix + names.value(), hidden, hidden));
        String added = mask;
        Distances d = distances;
        if (d != null && kinds.contains("c2p")) {
            added = graph.node("Add", byDistance(query, prefix, names.key(), "pos_key_proj", d, d.falling), added);
        }
        if (d != null && kinds.contains("p2c")) {
            String turned = byDistance(key, prefix, names.query(), "pos_query_proj", d, d.rising);
            added = graph.node(
                    "Add", graph.node("Transpose", "", Map.of("perm", new long[] {0, 1, 3, 2}), turned), added);
        }
        String attended = graph.node(
                "MultiHeadAttention",
                EncoderGraph.CONTRIB,
                Map.of("num_heads", (long) stack.heads, "scale", scale),
                query,
                key,
                value,
                "",
                "",
                added);
        return stack.afterAttention(x, stack.rows(attended, hidden), prefix);
    }

    /** Scores of tokens by distance, {@code [batch, heads, tokens, tokens]}. */
    private String byDistance(
            String tokens, String prefix, String shared, String own, Distances distances, String buckets) {
        boolean share = config.flag("share_att_key", false);
        String projected =
                weights.linear(distances.vectors, prefix + (share ? shared : ATTENTION + own), hidden, hidden);
        // ONNX Runtime computes this once, when it loads the model.
        String table = graph.node(
                "Transpose",
                "",
                Map.of("perm", new long[] {1, 0, 2}),
                heads(projected, graph.longs(0, stack.heads, -1)));
        String chosen = graph.node("Gather", "", Map.of("axis", 1L), table, buckets);
        String split = graph.node(
                "Transpose",
                "",
                Map.of("perm", new long[] {0, 2, 1, 3}),
                heads(tokens, graph.longs(0, 0, stack.heads, -1)));
        String scores =
                graph.node("FusedMatMul", EncoderGraph.CONTRIB, Map.of("transB", 1L, "alpha", scale), split, chosen);
        String flat = graph.node("Reshape", scores, graph.longs(0, 0, -1));
        String moved = graph.node("Slice", flat, distances.from, distances.to, graph.longs(2));
        return graph.node(
                "Slice",
                graph.node("Reshape", moved, distances.shape),
                graph.longs(0),
                distances.tokens,
                graph.longs(3));
    }

    private String heads(String x, String shape) {
        return graph.node("Reshape", x, shape);
    }

    /** The convolution over neighbours that some models of the second version have beside their first layer. */
    private String convolution(String embedded, String x, String column) {
        int kernel = config.size("conv_kernel_size", MOST_KERNEL);
        int groups = config.size("conv_groups", EncoderStack.MOST_HIDDEN, 1);
        if (kernel % 2 == 0 || hidden % groups != 0) {
            throw ServingException.invalidArgument(
                    "config.json has conv_kernel_size " + kernel + " and conv_groups " + groups
                            + " (expected: an odd size, and a divisor of hidden_size " + hidden + ")",
                    "copy the config.json that belongs to the weights");
        }
        String prefix = weights.base("encoder.conv.");
        long around = (kernel - 1L) / 2;
        long[] turn = {0, 2, 1};
        String convolved = graph.node(
                "Conv",
                "",
                Map.of("pads", new long[] {around, around}, "group", (long) groups),
                graph.node("Transpose", "", Map.of("perm", turn), embedded),
                weights.get(prefix + "conv.weight", hidden, hidden / groups, kernel),
                weights.get(prefix + "conv.bias", hidden));
        String kept = graph.node("Mul", graph.node("Transpose", "", Map.of("perm", turn), convolved), column);
        String activated = stack.rows(Activations.apply(graph, config.text("conv_act", "tanh"), kept), hidden);
        String normal = weights.normOfSum(activated, x, prefix + "LayerNorm", hidden, stack.epsilon);
        return stack.rows(graph.node("Mul", stack.cube(normal), column), hidden);
    }
}
