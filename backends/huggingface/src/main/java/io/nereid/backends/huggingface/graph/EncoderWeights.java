// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.graph;

import io.nereid.backends.huggingface.weights.Checkpoint;
import io.nereid.backends.huggingface.weights.WeightTensor;
import io.nereid.base.ServingException;
import java.util.Arrays;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Adds the weights of a checkpoint to a graph, with their shapes checked, and the layers that have weights. Confined to one thread.
 */
final class EncoderWeights {
    private static final long ANY = -1;

    private final EncoderGraph graph;
    private final Checkpoint checkpoint;
    private final String prefix;

    /** @param prefix the name of the base model, such as {@code bert}, which precedes the names of its weights unless it was saved alone */
    EncoderWeights(EncoderGraph graph, Checkpoint checkpoint, String prefix) {
        this.graph = graph;
        this.checkpoint = checkpoint;
        String dotted = prefix.isEmpty() ? "" : prefix + ".";
        this.prefix = checkpoint.all().stream().anyMatch(w -> w.name().startsWith(dotted)) ? dotted : "";
    }

    /** A name of the base model. */
    String base(String name) {
        return prefix + name;
    }

    boolean has(String name) {
        return find(name) != null;
    }

    private @Nullable WeightTensor find(String name) {
        WeightTensor found = checkpoint.find(name);
        if (found == null && name.endsWith("LayerNorm.weight")) {
            found = checkpoint.find(name.substring(0, name.length() - "weight".length()) + "gamma");
        }
        if (found == null && name.endsWith("LayerNorm.bias")) {
            found = checkpoint.find(name.substring(0, name.length() - "bias".length()) + "beta");
        }
        return found;
    }

    private WeightTensor required(String name) {
        WeightTensor found = find(name);
        if (found == null) {
            throw ServingException.invalidArgument(
                    "the weights in '" + checkpoint.directory() + "' lack '" + name + "'",
                    "copy all files of the model, and check that config.json names the architecture that was saved");
        }
        return found;
    }

    /** The first dimension of a weight. */
    long rows(String name) {
        List<Long> shape = required(name).shape();
        return shape.isEmpty() ? 0 : shape.get(0);
    }

    /**
     * A weight of this shape.
     *
     * @param dims the expected dimensions, -1 for any size
     */
    String get(String name, long... dims) {
        WeightTensor weight = required(name);
        boolean same = weight.shape().size() == dims.length;
        for (int i = 0; same && i < dims.length; i++) {
            same = dims[i] == ANY || weight.shape().get(i) == dims[i];
        }
        if (!same) {
            throw ServingException.invalidArgument(
                    "weight '" + name + "' has the shape " + weight.shape() + " (config.json says "
                            + Arrays.toString(dims) + ")",
                    "copy the config.json that belongs to the weights");
        }
        if (!weight.type().real()) {
            throw ServingException.invalidArgument(
                    "weight '" + name + "' is of type " + weight.type()
                            + ": quantised checkpoints are not computed (expected: F32, F16 or BF16)",
                    "serve the checkpoint that it was made from, or export it to ONNX with optimum-cli");
        }
        return graph.weight(weight);
    }

    /** A linear layer on rows: {@code [n, in]} to {@code [n, out]}. The bias may be absent where it is optional. */
    String linear(String x, String name, long in, long out, boolean biasOptional) {
        String weight = get(name + ".weight", out, in);
        if (biasOptional && !has(name + ".bias")) {
            return gemm(x, weight, "");
        }
        return gemm(x, weight, get(name + ".bias", out));
    }

    String linear(String x, String name, long in, long out) {
        return linear(x, name, in, out, false);
    }

    /** {@code x · weightᵀ + bias}; an empty bias is none. */
    String gemm(String x, String weight, String bias) {
        java.util.Map<String, Object> transposed = java.util.Map.of("transB", 1L);
        return bias.isEmpty()
                ? graph.node("Gemm", "", transposed, x, weight)
                : graph.node("Gemm", "", transposed, x, weight, bias);
    }

    /** Layer normalisation over the last dimension. */
    String norm(String x, String name, long size, double epsilon) {
        String weight = get(name + ".weight", size);
        java.util.Map<String, Object> attributes = java.util.Map.of("axis", -1L, "epsilon", (float) epsilon);
        return has(name + ".bias")
                ? graph.node("LayerNormalization", "", attributes, x, weight, get(name + ".bias", size))
                : graph.node("LayerNormalization", "", attributes, x, weight);
    }

    /** Layer normalisation of a sum. */
    String normOfSum(String x, String residual, String name, long size, double epsilon) {
        return graph.node(
                "SkipLayerNormalization",
                EncoderGraph.CONTRIB,
                java.util.Map.of("epsilon", (float) epsilon),
                x,
                residual,
                get(name + ".weight", size),
                get(name + ".bias", size));
    }
}
