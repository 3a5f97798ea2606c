// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.explain.method;

import io.nereid.base.ServingException;
import io.nereid.explain.request.ExplainOptions;
import java.util.Map;

/**
 * The desired prediction of a counterfactual: a class that must have the greatest number, or one number within limits.
 * Immutable.
 *
 * @param at the index of the number in a prediction
 * @param greatest whether it must be the greatest
 * @param least otherwise its lower limit
 * @param most and its upper limit
 */
record CounterfactualGoal(int at, boolean greatest, double least, double most) {
    /**
     * Reads the parameter {@code desired}.
     *
     * @throws ServingException INVALID_ARGUMENT when it is missing or cannot be satisfied
     */
    static CounterfactualGoal of(ExplanationTask question) {
        ExplainOptions options = question.options();
        int width = question.width();
        int target = question.target(question.predictions()[0]);
        if ("top".equals(options.get("target"))) {
            throw ExplainOptions.wrong("target", "top", "a number, for which number of a prediction is desired");
        }
        Object desired = options.get("desired");
        if (desired instanceof String) {
            desired = options.number("desired", 0, -Double.MAX_VALUE, Double.MAX_VALUE);
        }
        if (desired instanceof Map<?, ?> range) {
            for (Object key : range.keySet()) {
                ExplainOptions.require(
                        String.valueOf(key), java.util.List.of("min", "max"), "field of parameter 'desired':");
            }
            if (width > 1 && target < 0) {
                throw ServingException.invalidArgument(
                        "parameter 'desired' has limits for one number, and a prediction has " + width,
                        "select it with parameter target");
            }
            double least = limit(range.get("min"), Double.NEGATIVE_INFINITY);
            double most = limit(range.get("max"), Double.POSITIVE_INFINITY);
            if (range.isEmpty() || least > most) {
                throw ExplainOptions.wrong("desired", range, "min, max or both, the one not above the other");
            }
            return new CounterfactualGoal(Math.max(0, target), false, least, most);
        }
        if (!(desired instanceof Double value)) {
            throw ServingException.invalidArgument(
                    "method 'counterfactual' needs parameter 'desired', what the prediction should be (expected: "
                            + (width > 1
                                    ? "a class from 0 to " + (width - 1) + ", or "
                                    : "a number with a tolerance, or ")
                            + "{\"min\": …, \"max\": …})");
        }
        if (width > 1 && target < 0) {
            if (value != Math.rint(value) || value < 0 || value >= width) {
                throw ExplainOptions.wrong("desired", value, "a class from 0 to " + (width - 1));
            }
            return new CounterfactualGoal(value.intValue(), true, 0, 0);
        }
        int at = Math.max(0, target);
        double tolerance = options.number("tolerance", -1, 0, Double.MAX_VALUE);
        if (tolerance < 0) {
            for (double[] prediction : question.predictions()) {
                if (prediction[at] != Math.rint(prediction[at])) {
                    throw ServingException.invalidArgument(
                            "parameter 'desired' is one number, which a prediction such as " + prediction[at]
                                    + " will hardly meet",
                            "give limits, {\"min\": …, \"max\": …}, or parameter tolerance");
                }
            }
            tolerance = 0;
        }
        return new CounterfactualGoal(at, false, value - tolerance, value + tolerance);
    }

    private static double limit(@org.jspecify.annotations.Nullable Object value, double otherwise) {
        if (value == null) {
            return otherwise;
        }
        if (value instanceof Double number) {
            return number;
        }
        throw ExplainOptions.wrong("desired", value, "numbers for min and max");
    }

    /** The distance of a prediction from the goal; 0 when it is reached. */
    double gap(double[] prediction) {
        double value = prediction[at];
        if (greatest) {
            double other = Double.NEGATIVE_INFINITY;
            for (int i = 0; i < prediction.length; i++) {
                other = i == at ? other : Math.max(other, prediction[i]);
            }
            return value > other ? 0 : Math.max(Double.MIN_NORMAL, other - value);
        }
        return value < least ? least - value : value > most ? value - most : Double.isNaN(value) ? Double.MAX_VALUE : 0;
    }
}
