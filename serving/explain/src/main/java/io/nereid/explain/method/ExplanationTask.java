// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.method;

import io.nereid.base.ServingException;
import io.nereid.explain.model.PredictionBudget;
import io.nereid.explain.model.RowModel;
import io.nereid.explain.request.Background;
import io.nereid.explain.request.ExplainOptions;
import io.nereid.explain.request.FeatureColumns;
import io.nereid.explain.request.ScoringMetric;
import java.util.Map;
import java.util.SplittableRandom;
import org.jspecify.annotations.Nullable;

/**
 * The input of an explanation method. Immutable, but for the budget.
 *
 * @param rows the instances, at least one
 * @param predictions the model's predictions for them
 * @param columns the features
 * @param background the background data; null when there are none
 * @param options the parameters
 * @param model the explained output of the model
 * @param budget the limits
 */
public record ExplanationTask(
        double[][] rows,
        double[][] predictions,
        FeatureColumns columns,
        @Nullable Background background,
        ExplainOptions options,
        RowModel model,
        PredictionBudget budget) {
    /** Most features for a linear model: the system of equations grows with their square. */
    static final int MOST_FEATURES = 512;

    private static final long MOST_NUMBERS = 1 << 24;

    /**
     * Checks that the memory for one instance is affordable.
     *
     * @throws ServingException INVALID_ARGUMENT when it is not
     */
    void small(long numbers, String parameter) {
        if (numbers > MOST_NUMBERS) {
            throw ServingException.invalidArgument(
                    "parameter '" + parameter + "' needs " + numbers + " numbers for one instance of " + features()
                            + " features and " + width() + " outputs (expected: at most " + MOST_NUMBERS + ")",
                    "make " + parameter + " smaller");
        }
    }

    /** The result of a method: the explanation of each instance, and further fields of the response. */
    public record Answer(Iterable<?> explanations, Map<String, ?> facts) {}

    int features() {
        return columns.count();
    }

    /** The numbers in a prediction. */
    int width() {
        return predictions[0].length;
    }

    /** A random generator that is the same for the same seed and row, so that explanations are reproducible. */
    SplittableRandom random(int row) {
        long seed = options.whole("seed", 0, Long.MIN_VALUE / 2048, Long.MAX_VALUE / 2048);
        return new SplittableRandom(seed * 0x9e3779b97f4a7c15L + 31L * row + 7);
    }

    /** The index of the number that is explained; -1 for all. */
    int target(double[] values) {
        return target(options, values);
    }

    static int target(ExplainOptions options, double[] values) {
        Object target = options.get("target");
        if (target == null || "all".equals(target)) {
            return -1;
        }
        if ("top".equals(target)) {
            return ScoringMetric.greatest(values);
        }
        Object number = target;
        if (target instanceof String text) {
            try {
                number = Double.parseDouble(text.strip());
            } catch (NumberFormatException e) {
                // Rejected below.
            }
        }
        if (number instanceof Double place && place == Math.rint(place) && place >= 0 && place < values.length) {
            return place.intValue();
        }
        throw ExplainOptions.wrong("target", target, "top, all, or a number from 0 to " + (values.length - 1));
    }
}
