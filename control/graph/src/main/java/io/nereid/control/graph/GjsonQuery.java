// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.graph;

import com.fasterxml.jackson.databind.JsonNode;
import org.jspecify.annotations.Nullable;

/**
 * The query in the parentheses of {@code #(…)}. Immutable.
 *
 * @param left the path from the element to the value that is compared
 * @param operator {@code ==}, {@code !=}, {@code <}, {@code <=}, {@code >}, {@code >=}, {@code %} or {@code !%}; null
 *     when the value only has to exist
 * @param right a string, number, true, false or null; null without an operator
 */
record GjsonQuery(
        GjsonComponent left,
        @Nullable String operator,
        @Nullable JsonNode right) {
    /** Whether an element matches. */
    boolean fits(JsonNode element) {
        JsonNode value = left.find(element);
        if (value == null) {
            return false;
        }
        if (operator == null || right == null) {
            return true;
        }
        if (right.isTextual()) {
            return value.isTextual() && fits(value.textValue(), right.textValue());
        }
        if (right.isNumber()) {
            return value.isNumber() && fits(Double.compare(value.doubleValue(), right.doubleValue()));
        }
        return switch (operator) {
            case "==" -> value.equals(right);
            case "!=" -> !value.equals(right);
            case "<", "<=", ">", ">=" ->
                value.isBoolean()
                        && right.isBoolean()
                        && fits(Boolean.compare(value.booleanValue(), right.booleanValue()));
            default -> false;
        };
    }

    private boolean fits(String value, String pattern) {
        return switch (String.valueOf(operator)) {
            case "%" -> GjsonWildcards.fits(pattern, value);
            case "!%" -> !GjsonWildcards.fits(pattern, value);
            default -> fits(value.compareTo(pattern));
        };
    }

    private boolean fits(int order) {
        return switch (String.valueOf(operator)) {
            case "==" -> order == 0;
            case "!=" -> order != 0;
            case "<" -> order < 0;
            case "<=" -> order <= 0;
            case ">" -> order > 0;
            case ">=" -> order >= 0;
            default -> false;
        };
    }
}
