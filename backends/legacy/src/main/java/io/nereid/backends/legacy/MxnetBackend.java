// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.legacy;

import java.nio.file.Path;
import java.util.List;

/** MXNet's models: a graph ({@code NAME-symbol.json}) and its weights ({@code NAME-0000.params}). Immutable. */
public final class MxnetBackend extends RefusingBackend {
    private static final String SYMBOL = "-symbol.json";

    /** For the service loader. */
    public MxnetBackend() {
        super("mxnet", List.of("mxnet_mxnet"), List.of("model-symbol.json"));
    }

    @Override
    public boolean recognises(Path file) {
        if (!file.getFileName().toString().endsWith(SYMBOL)) {
            return false;
        }
        String start = Head.of(file).text().stripLeading();
        return start.startsWith("{") && start.contains("\"nodes\"");
    }

    @Override
    String refusal(Path file, Head head) {
        return "is the graph of an MXNet model, which this server does not run (MXNet was retired in 2023)";
    }

    @Override
    String remedy(Path file) {
        String name = file.getFileName().toString();
        String stem = name.endsWith(SYMBOL) ? name.substring(0, name.length() - SYMBOL.length()) : "NAME";
        return "export it to ONNX with MXNet 1.9 (mxnet.onnx.export_model('" + name + "', '" + stem
                + "-0000.params', [(1, 3, 224, 224)], numpy.float32, 'model.onnx') with the shapes of its inputs)"
                + " and serve model.onnx";
    }
}
