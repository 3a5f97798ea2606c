// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.examples.linear;

import io.nereid.base.ErrorCode;
import io.nereid.base.ServingException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * The numbers of a linear model and their text format: a line {@code bias NUMBER}, a line {@code weight NUMBER} for
 * each feature, and a line {@code end}, by which a truncated file is recognised. Immutable: the array is not shared.
 */
final class Weights {
    /** The largest file that is read, so that a foreign file cannot fill the memory. */
    private static final long MAX_BYTES = 16 << 20;

    private final float bias;
    private final float[] weights;

    private Weights(float bias, float[] weights) {
        this.bias = bias;
        this.weights = weights;
    }

    /** Reads a file. */
    static Weights read(Path file) {
        List<String> lines;
        try {
            if (Files.size(file) > MAX_BYTES) {
                throw invalid(file, "it has " + Files.size(file) + " bytes (expected: at most " + MAX_BYTES + ")");
            }
            lines = Files.readString(file, StandardCharsets.ISO_8859_1).lines().toList();
        } catch (IOException e) {
            throw ServingException.wrap(
                    ErrorCode.INVALID_ARGUMENT,
                    "cannot read model file '" + file + "': " + e.getClass().getSimpleName(),
                    "put the file there, readable for the server",
                    e);
        }
        int features = lines.size() - 2;
        if (features < 1 || !lines.get(lines.size() - 1).equals("end")) {
            throw invalid(file, "its last line is not 'end'");
        }
        float[] weights = new float[features];
        for (int i = 0; i < features; i++) {
            weights[i] = number(file, lines, i + 1, "weight ");
        }
        return new Weights(number(file, lines, 0, "bias "), weights);
    }

    private static float number(Path file, List<String> lines, int at, String prefix) {
        String line = lines.get(at);
        try {
            if (line.startsWith(prefix)) {
                return Float.parseFloat(line.substring(prefix.length()));
            }
        } catch (NumberFormatException e) {
            // reported below
        }
        throw invalid(file, "line " + (at + 1) + " is not '" + prefix + "' and a number");
    }

    private static ServingException invalid(Path file, String why) {
        return ServingException.invalidArgument(
                "model file '" + file + "' cannot be loaded: " + why, "write the file again");
    }

    /** The number of features. */
    int size() {
        return weights.length;
    }

    float weight(int feature) {
        return weights[feature];
    }

    float bias() {
        return bias;
    }
}
