// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain;

import io.nereid.base.ServingException;
import java.util.Map;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * What a method is asked. Immutable, but for the budget.
 *
 * @param rows instances, at least one
 * @param predictions what the model says of them
 * @param columns the features
 * @param background rows that stand for the data; null when there are none
 * @param options everything that was said
 * @param model the output that is explained
 * @param budget what may be spent
 */
record Question(
        double[][] rows,
        double[][] predictions,
        Columns columns,
        @Nullable Background background,
        Options options,
        RowModel model,
        Budget budget) {
    /** Features of which linear models are fitted: more of them need too large a system of equations. */
    static final int MOST_FEATURES = 512;

    private static final long MOST_NUMBERS = 1 << 24;

    /** @throws ServingException INVALID_ARGUMENT when so many numbers are too many to keep for one instance */
    void small(long numbers, String parameter) {
        if (numbers > MOST_NUMBERS) {
            throw ServingException.invalidArgument(
                    "parameter '" + parameter + "' needs " + numbers + " numbers for one instance of " + features()
                            + " features and " + width() + " outputs (expected: at most " + MOST_NUMBERS + ")",
                    "make " + parameter + " smaller");
        }
    }

    /** A method's answer: what is told of each instance, and what besides. */
    record Answer(Iterable<?> explanations, Map<String, ?> facts) {}

    int features() {
        return columns.count();
    }

    /** Numbers of a prediction. */
    int width() {
        return predictions[0].length;
    }

    /** The same numbers for the same seed, row and purpose. */
    SplittableRandom random(int row) {
        long seed = options.whole("seed", 0, Long.MIN_VALUE / 2048, Long.MAX_VALUE / 2048);
        return new SplittableRandom(seed * 0x9e3779b97f4a7c15L + 31L * row + 7);
    }

    /** Which number of a prediction is explained; -1 for all. */
    int target(double[] values) {
        return target(options, values);
    }

    static int target(Options options, double[] values) {
        Object target = options.get("target");
        if (target == null || "all".equals(target)) {
            return -1;
        }
        if ("top".equals(target)) {
            return Metric.greatest(values);
        }
        Object number = target;
        if (target instanceof String text) {
            try {
                number = Double.parseDouble(text.strip());
            } catch (NumberFormatException e) {
                // Refused below.
            }
        }
        if (number instanceof Double place && place == Math.rint(place) && place >= 0 && place < values.length) {
            return place.intValue();
        }
        throw Options.wrong("target", target, "top, all, or a number from 0 to " + (values.length - 1));
    }
}
