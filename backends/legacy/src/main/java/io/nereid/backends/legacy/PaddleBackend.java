// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.legacy;

import java.nio.file.Path;
import java.util.List;

/**
 * PaddlePaddle's inference models: a program ({@code __model__}, {@code *.pdmodel}, {@code *.json} of Paddle 3) and its
 * weights ({@code *.pdiparams}). Immutable.
 */
public final class PaddleBackend extends RefusingBackend {
    private static final String FLUID = "__model__";

    /** For the service loader. */
    public PaddleBackend() {
        super("paddle", List.of("paddle"), List.of("model.pdmodel", "inference.pdmodel", FLUID, "inference.json"));
    }

    @Override
    public boolean recognises(Path file) {
        if (!file.getFileName().toString().endsWith(".json")) {
            return true;
        }
        String start = Head.of(file).text();
        return start.startsWith("{") && start.contains("\"base_code\"") && start.contains("\"pir\"");
    }

    @Override
    String refusal(Path file, Head head) {
        return "is the program of a PaddlePaddle model, which this server does not run";
    }

    @Override
    String remedy(Path file) {
        String name = file.getFileName().toString();
        String command = "paddle2onnx --model_dir " + file.toAbsolutePath().getParent();
        if (!name.equals(FLUID)) {
            String stem = name.substring(0, name.lastIndexOf('.'));
            command += " --model_filename " + name + " --params_filename " + stem + ".pdiparams";
        }
        return "export it to ONNX (pip install paddlepaddle paddle2onnx; " + command
                + " --save_file model.onnx) and serve model.onnx";
    }
}
