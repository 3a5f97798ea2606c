// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.backends.huggingface.task;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.charset.StandardCharsets;
import java.util.Locale;

/** Probabilities, and numbers as Python writes them. Stateless. */
final class Numbers {
    private static final double SMALLEST_PLAIN = 1e-4;
    private static final double LARGEST_PLAIN = 1e16;

    private Numbers() {}

    /** The softmax of a part of an array. */
    static double[] softmax(float[] logits, int from, int count) {
        double most = Double.NEGATIVE_INFINITY;
        for (int i = 0; i < count; i++) {
            most = Math.max(most, logits[from + i]);
        }
        double[] out = new double[count];
        double sum = 0;
        for (int i = 0; i < count; i++) {
            out[i] = Math.exp(logits[from + i] - most);
            sum += out[i];
        }
        for (int i = 0; i < count; i++) {
            out[i] /= sum;
        }
        return out;
    }

    static double sigmoid(double x) {
        return 1 / (1 + Math.exp(-x));
    }

    static int argmax(float[] values, int from, int count) {
        int best = 0;
        for (int i = 1; i < count; i++) {
            if (values[from + i] > values[from + best]) {
                best = i;
            }
        }
        return best;
    }

    static int argmax(double[] values) {
        int best = 0;
        for (int i = 1; i < values.length; i++) {
            if (values[i] > values[best]) {
                best = i;
            }
        }
        return best;
    }

    /** The number as Python's {@code repr} of a float. */
    static String python(double value) {
        if (Double.isNaN(value) || Double.isInfinite(value)) {
            return Double.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
        }
        double size = Math.abs(value);
        if (size == 0 || (size >= SMALLEST_PLAIN && size < LARGEST_PLAIN)) {
            String plain = new BigDecimal(Double.toString(value)).toPlainString();
            return plain.indexOf('.') < 0 ? plain + ".0" : plain;
        }
        String[] parts = Double.toString(value).split("E", -1);
        BigDecimal exact = new BigDecimal(Double.toString(value)).stripTrailingZeros();
        int exponent = exact.precision() - exact.scale() - 1;
        String digits = exact.unscaledValue().abs().toString();
        return (parts[0].startsWith("-") ? "-" : "") + digits.charAt(0)
                + (digits.length() > 1 ? "." + digits.substring(1) : "") + "e" + (exponent < 0 ? "-" : "+")
                + String.format(Locale.ROOT, "%02d", Math.abs(exponent));
    }

    /** The number rounded to four places, with as many written as Python's {@code repr} does. */
    static String fourPlaces(double value) {
        BigDecimal rounded = new BigDecimal(value).setScale(4, RoundingMode.HALF_EVEN);
        return python(rounded.doubleValue());
    }

    static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}
