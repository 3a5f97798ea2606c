// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.graph;

import io.nereid.base.ServingException;
import java.util.Map;

/** The activation functions of transformers, by their names in {@code config.json}. Stateless. */
final class Activations {
    private static final float QUICK = 1.702f;

    private Activations() {}

    /** @throws ServingException INVALID_ARGUMENT for an unknown function */
    static String apply(EncoderGraph graph, String name, String x) {
        return switch (name) {
            case "gelu", "gelu_python" -> graph.node("Gelu", EncoderGraph.CONTRIB, Map.of(), x);
            case "gelu_new", "gelu_fast", "gelu_pytorch_tanh" ->
                graph.node("FastGelu", EncoderGraph.CONTRIB, Map.of(), x);
            case "quick_gelu" -> graph.node("QuickGelu", EncoderGraph.CONTRIB, Map.of("alpha", QUICK), x);
            case "silu", "swish" -> graph.node("Mul", x, graph.node("Sigmoid", x));
            case "relu" -> graph.node("Relu", x);
            case "tanh" -> graph.node("Tanh", x);
            case "sigmoid" -> graph.node("Sigmoid", x);
            case "linear", "identity" -> x;
            default ->
                throw ServingException.invalidArgument(
                        "config.json names the activation function '" + name
                                + "' (expected: gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, quick_gelu, relu, silu, tanh or"
                                + " sigmoid)",
                        "export the model to ONNX with optimum-cli");
        };
    }
}
