// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.gpucheck;

import io.nereid.base.ServingException;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Dense layers of one width with a bias and ReLU, whose numbers follow from their places. Immutable.
 *
 * @param layers how many layers, at least 1
 * @param width how many numbers go into a layer and come out of it
 * @param matrices how many layers have numbers of their own; the others repeat them
 */
record DenseShape(int layers, int width, int matrices) {
    private static final Pattern TEXT = Pattern.compile("layers=(\\d{1,4}) width=(\\d{1,5}) matrices=(\\d{1,4})\\s*");

    /** Reads the text of a model's file. */
    static DenseShape parse(String text) {
        Matcher parts = TEXT.matcher(text);
        if (!parts.matches()) {
            throw ServingException.invalidArgument(
                    "the model is '" + text + "' (expected: layers=L width=W matrices=M)");
        }
        DenseShape shape = new DenseShape(
                Integer.parseInt(parts.group(1)), Integer.parseInt(parts.group(2)), Integer.parseInt(parts.group(3)));
        if (shape.layers < 1 || shape.width < 1 || shape.matrices < 1 || shape.matrices > shape.layers) {
            throw ServingException.invalidArgument(
                    "the model is '" + text + "' (expected: numbers of at least 1, and no more matrices than layers)");
        }
        return shape;
    }

    /** The text that {@link #parse} reads. */
    String text() {
        return "layers=" + layers + " width=" + width + " matrices=" + matrices;
    }

    /** The weights of a matrix by rows: what comes out is the product of a row of inputs with it. */
    float[] weights(int matrix) {
        // With this variance ReLU neither grows nor shrinks the numbers from layer to layer.
        return numbers(1 + 2 * matrix, width * width, (float) Math.sqrt(6.0 / width));
    }

    /** The biases of a matrix. */
    float[] biases(int matrix) {
        return numbers(2 + 2 * matrix, width, 0.1f);
    }

    /** Numbers between {@code -most} and {@code most} by a linear congruential generator. */
    static float[] numbers(int seed, int count, float most) {
        float[] all = new float[count];
        long state = seed * 0x9E37_79B9_7F4A_7C15L;
        for (int i = 0; i < count; i++) {
            state = state * 6_364_136_223_846_793_005L + 1_442_695_040_888_963_407L;
            all[i] = ((state >>> 40) / (float) (1 << 23) - 1) * most;
        }
        return all;
    }

    /** Computes on the processor what the GPU computes. */
    float[] compute(float[] inputs) {
        float[] from = inputs;
        for (int layer = 0; layer < layers; layer++) {
            float[] weights = weights(layer % matrices);
            float[] biases = biases(layer % matrices);
            float[] to = new float[from.length];
            for (int row = 0; row < from.length; row += width) {
                System.arraycopy(biases, 0, to, row, width);
                for (int k = 0; k < width; k++) {
                    float value = from[row + k];
                    for (int j = 0; j < width; j++) {
                        to[row + j] += value * weights[k * width + j];
                    }
                }
                for (int j = 0; j < width; j++) {
                    to[row + j] = Math.max(0, to[row + j]);
                }
            }
            from = to;
        }
        return from;
    }
}
