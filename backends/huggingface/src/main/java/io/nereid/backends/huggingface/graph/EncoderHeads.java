// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.graph;

import io.nereid.backends.huggingface.weights.Checkpoint;
import io.nereid.base.ServingException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Builds the graph of a model: the encoder and the head of its task. Stateless. */
public final class EncoderHeads {
    /** The output of all tasks but {@link EncoderTask#TEXT_EMBEDDING}. */
    public static final String LOGITS = "logits";

    /** The output of {@link EncoderTask#TEXT_EMBEDDING}, {@code [batch, width]}. */
    public static final String EMBEDDING = "embedding";

    /** The input of {@link EncoderTask#FILL_MASK} with the places to predict, row and token, {@code [places, 2]}. */
    public static final String PLACES = "mask_places";

    private static final float SMALLEST = 1e-9f;
    private static final float SMALLEST_NORM = 1e-12f;

    private final EncoderStack stack;
    private final EncoderGraph graph;
    private final EncoderWeights weights;
    private final EncoderConfig config;
    private final int hidden;

    private EncoderHeads(EncoderStack stack) {
        this.stack = stack;
        this.graph = stack.graph;
        this.weights = stack.weights;
        this.config = stack.config;
        this.hidden = stack.hidden;
    }

    /**
     * Builds a graph. Its inputs are {@code input_ids}, {@code attention_mask}, in some families {@code token_type_ids}, and
     * {@value #PLACES} of {@link EncoderTask#FILL_MASK}; its output is {@value #LOGITS} or {@value #EMBEDDING}. The logits are
     * {@code [batch, labels]} of sequences, {@code [batch, tokens, labels]} of tokens, {@code [batch, tokens, 2]} of answers, with start
     * and end, and {@code [places, vocabulary]} of masks.
     *
     * @param steps what follows the encoder for embeddings; not used by other tasks
     * @throws ServingException INVALID_ARGUMENT when weights are missing, or of another shape than the configuration says
     */
    public static EncoderGraph build(
            EncoderConfig config,
            Checkpoint checkpoint,
            EncoderFamily family,
            EncoderTask task,
            List<SentenceStep> steps) {
        EncoderGraph graph = new EncoderGraph();
        EncoderWeights weights = new EncoderWeights(graph, checkpoint, family.prefix());
        EncoderStack stack = new EncoderStack(graph, weights, config, family);
        EncoderHeads heads = new EncoderHeads(stack);
        String rows = stack.build();
        switch (task) {
            case SEQUENCE_CLASSIFICATION ->
                graph.output(LOGITS, heads.sequence(rows), 2, config.labels().size());
            case TOKEN_CLASSIFICATION ->
                graph.output(
                        LOGITS,
                        stack.cube(heads.tokens(rows, config.labels().size())),
                        3,
                        config.labels().size());
            case QUESTION_ANSWERING -> graph.output(LOGITS, stack.cube(heads.answers(rows)), 3, 2);
            case FILL_MASK -> graph.output(LOGITS, heads.masks(rows), 2, stack.vocabulary);
            case TEXT_EMBEDDING -> heads.embedding(rows, steps);
        }
        return graph;
    }

    private String first(String rows) {
        return graph.node("Gather", "", Map.of("axis", 1L), stack.cube(rows), graph.number(0));
    }

    private String dense(String x, String name, String activation) {
        return Activations.apply(graph, activation, weights.linear(x, name, hidden, hidden));
    }

    private String sequence(String rows) {
        int labels = config.labels().size();
        return switch (stack.family) {
            case BERT ->
                weights.linear(dense(first(rows), weights.base("pooler.dense"), "tanh"), "classifier", hidden, labels);
            case ALBERT ->
                weights.linear(dense(first(rows), weights.base("pooler"), "tanh"), "classifier", hidden, labels);
            case DEBERTA ->
                weights.linear(
                        dense(first(rows), "pooler.dense", config.text("pooler_hidden_act", "gelu")),
                        "classifier",
                        hidden,
                        labels);
            case ROBERTA, MPNET ->
                weights.linear(dense(first(rows), "classifier.dense", "tanh"), "classifier.out_proj", hidden, labels);
            case ELECTRA ->
                weights.linear(dense(first(rows), "classifier.dense", "gelu"), "classifier.out_proj", hidden, labels);
            case DISTILBERT ->
                weights.linear(dense(first(rows), "pre_classifier", "relu"), "classifier", hidden, labels);
            case MODERNBERT -> {
                String pooled =
                        config.text("classifier_pooling", "cls").equals("mean") ? pool(rows, "mean") : first(rows);
                yield weights.linear(modernHead(pooled, "classifier_activation"), "classifier", hidden, labels);
            }
        };
    }

    private String modernHead(String x, String activation) {
        String y = Activations.apply(
                graph, config.text(activation, "gelu"), weights.linear(x, "head.dense", hidden, hidden, true));
        return weights.norm(y, "head.norm", hidden, stack.epsilon);
    }

    private String tokens(String rows, int labels) {
        String x = stack.family == EncoderFamily.MODERNBERT ? modernHead(rows, "classifier_activation") : rows;
        return weights.linear(x, "classifier", hidden, labels);
    }

    private String answers(String rows) {
        return stack.family == EncoderFamily.MODERNBERT
                ? tokens(rows, 2)
                : weights.linear(rows, "qa_outputs", hidden, 2);
    }

    private String masks(String rows) {
        String places = graph.input(PLACES, 2);
        String x = graph.node("GatherND", stack.cube(rows), places);
        int embedding = stack.embedding;
        return switch (stack.family) {
            case BERT -> {
                String y = dense(x, "cls.predictions.transform.dense", stack.activation);
                y = weights.norm(y, "cls.predictions.transform.LayerNorm", hidden, stack.epsilon);
                yield vocabulary(y, "cls.predictions.decoder.weight", hidden, "cls.predictions.bias");
            }
            case ROBERTA, MPNET -> {
                String y = dense(x, "lm_head.dense", "gelu");
                y = weights.norm(y, "lm_head.layer_norm", hidden, stack.epsilon);
                yield vocabulary(y, "lm_head.decoder.weight", hidden, "lm_head.bias");
            }
            case DISTILBERT -> {
                String y = dense(x, "vocab_transform", stack.activation);
                y = weights.norm(y, "vocab_layer_norm", hidden, stack.epsilon);
                yield vocabulary(y, "vocab_projector.weight", hidden, "vocab_projector.bias");
            }
            case ALBERT -> {
                String y = Activations.apply(
                        graph, stack.activation, weights.linear(x, "predictions.dense", hidden, embedding));
                y = weights.norm(y, "predictions.LayerNorm", embedding, stack.epsilon);
                yield vocabulary(y, "predictions.decoder.weight", embedding, "predictions.bias");
            }
            case ELECTRA -> {
                String y = Activations.apply(
                        graph, "gelu", weights.linear(x, "generator_predictions.dense", hidden, embedding));
                y = weights.norm(y, "generator_predictions.LayerNorm", embedding, stack.epsilon);
                yield vocabulary(y, "generator_lm_head.weight", embedding, "generator_lm_head.bias");
            }
            case DEBERTA -> {
                // The head with which the models were published, or that of transformers' own code before it had it.
                boolean published = weights.has("lm_predictions.lm_head.dense.weight");
                String name = published ? "lm_predictions.lm_head" : "cls.predictions.transform";
                int width = published ? hidden : embedding;
                String y =
                        Activations.apply(graph, stack.activation, weights.linear(x, name + ".dense", hidden, width));
                y = weights.norm(y, name + ".LayerNorm", width, stack.epsilon);
                String head = published ? name : "cls.predictions";
                yield vocabulary(y, head + ".decoder.weight", width, head + ".bias");
            }
            case MODERNBERT ->
                vocabulary(modernHead(x, "classifier_activation"), "decoder.weight", hidden, "decoder.bias");
        };
    }

    /** The scores of the whole vocabulary, by a matrix that often is that of the embeddings, and then not saved again. */
    private String vocabulary(String x, String name, long width, String bias) {
        String own = stack.family == EncoderFamily.MODERNBERT
                ? "embeddings.tok_embeddings.weight"
                : "embeddings.word_embeddings.weight";
        String matrix = weights.get(weights.has(name) ? name : weights.base(own), stack.vocabulary, width);
        String decoder = name.replace(".weight", ".bias");
        String added = weights.has(bias) ? bias : weights.has(decoder) ? decoder : "";
        return weights.gemm(x, matrix, added.isEmpty() ? "" : weights.get(added, stack.vocabulary));
    }

    private void embedding(String rows, List<SentenceStep> steps) {
        String x = rows;
        long width = hidden;
        for (SentenceStep step : steps) {
            if (step instanceof SentenceStep.Pool pool) {
                List<String> parts = new ArrayList<>();
                for (String mode : pool.modes()) {
                    parts.add(pool(rows, mode));
                }
                x = parts.size() == 1
                        ? parts.get(0)
                        : graph.node("Concat", "", Map.of("axis", 1L), parts.toArray(new String[0]));
                width = (long) hidden * parts.size();
            } else if (step instanceof SentenceStep.Dense dense) {
                if (dense.in() != width) {
                    throw ServingException.invalidArgument(
                            "a Dense module takes vectors of " + dense.in() + " numbers, and gets " + width,
                            "copy the whole folder of the sentence-transformers model");
                }
                EncoderWeights own = new EncoderWeights(graph, dense.weights(), "");
                x = Activations.apply(
                        graph, dense.activation(), own.linear(x, "linear", dense.in(), dense.out(), !dense.bias()));
                width = dense.out();
            } else {
                String length = graph.node("ReduceL2", "", Map.of("axes", new long[] {1}, "keepdims", 1L), x);
                x = graph.node("Div", x, graph.node("Max", length, graph.scalar(SMALLEST_NORM)));
            }
        }
        graph.output(EMBEDDING, x, 2, width);
    }

    /** One vector of each text: {@code [batch, width]}. */
    private String pool(String rows, String mode) {
        String x = stack.cube(rows);
        if (mode.equals("cls")) {
            return graph.node("Gather", "", Map.of("axis", 1L), x, graph.number(0));
        }
        String mask =
                graph.node("Unsqueeze", graph.node("Cast", "", Map.of("to", 1L), EncoderStack.MASK), graph.longs(2));
        switch (mode) {
            case "max" -> {
                String outside = graph.node("Equal", mask, graph.scalar(0));
                String kept = graph.node("Where", outside, graph.scalar(-1e9f), x);
                return graph.node("ReduceMax", "", Map.of("axes", new long[] {1}, "keepdims", 0L), kept);
            }
            case "lasttoken" -> {
                String places =
                        graph.node("Unsqueeze", graph.node("Mul", stack.range(), EncoderStack.MASK), graph.longs(2));
                String last = graph.node("ReduceMax", "", Map.of("axes", new long[] {1}, "keepdims", 0L), places);
                return graph.node("GatherND", "", Map.of("batch_dims", 1L), x, last);
            }
            default -> {
                String factors = mask;
                if (mode.equals("weightedmean")) {
                    String places = graph.node("Add", stack.range(), graph.number(1));
                    String column =
                            graph.node("Unsqueeze", graph.node("Cast", "", Map.of("to", 1L), places), graph.longs(1));
                    factors = graph.node("Mul", mask, column);
                }
                String sum = sum(graph.node("Mul", x, factors));
                String count = graph.node("Max", sum(factors), graph.scalar(SMALLEST));
                return graph.node("Div", sum, mode.equals("mean_sqrt_len_tokens") ? graph.node("Sqrt", count) : count);
            }
        }
    }

    private String sum(String x) {
        return graph.node("ReduceSum", "", Map.of("keepdims", 0L), x, graph.longs(1));
    }
}
