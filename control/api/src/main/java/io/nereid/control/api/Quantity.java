// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.api;

import io.nereid.base.ServingException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A quantity in Kubernetes' notation, such as {@code 500m}, {@code 2Gi} or {@code 1e3}. Immutable.
 *
 * <pre>{@code
 * long bytes = Quantity.parse("2Gi").units();   // 2147483648
 * double cores = Quantity.parse("500m").amount(); // 0.5
 * }</pre>
 *
 * @param value the value in base units, such as cores or bytes
 */
public record Quantity(BigDecimal value) {
    private static final Pattern SYNTAX = Pattern.compile(
            "([+-]?(?:[0-9]{1,30}(?:\\.[0-9]{0,30})?|\\.[0-9]{1,30}))(?:([eE][+-]?[0-9]{1,2})|([KMGTPE]i|[numkMGTPE]))?");

    /**
     * Parses a quantity.
     *
     * @throws ServingException INVALID_ARGUMENT when the text is not a quantity
     */
    public static Quantity parse(String text) {
        Matcher matcher = SYNTAX.matcher(text);
        if (!matcher.matches()) {
            throw ServingException.invalidArgument(
                    "\"" + ValidationErrors.clip(text) + "\" is not a quantity",
                    "write a number with an optional suffix such as m, k, M, G, Ki, Mi, Gi");
        }
        BigDecimal number = new BigDecimal(matcher.group(1));
        if (matcher.group(2) != null) {
            return new Quantity(
                    number.scaleByPowerOfTen(Integer.parseInt(matcher.group(2).substring(1))));
        }
        String suffix = matcher.group(3);
        if (suffix == null) {
            return new Quantity(number);
        }
        if (suffix.endsWith("i")) {
            return new Quantity(number.multiply(
                    BigDecimal.valueOf(1L << (10 * ("KMGTPE".indexOf(suffix.charAt(0)) + 1)))));
        }
        return new Quantity(number.scaleByPowerOfTen(
                switch (suffix) {
                    case "n" -> -9;
                    case "u" -> -6;
                    case "m" -> -3;
                    case "k" -> 3;
                    case "M" -> 6;
                    case "G" -> 9;
                    case "T" -> 12;
                    case "P" -> 15;
                    default -> 18;
                }));
    }

    /** The value in whole units, rounded up as in Kubernetes, and limited to the largest long. */
    public long units() {
        BigDecimal up = value.setScale(0, RoundingMode.CEILING);
        return up.compareTo(BigDecimal.valueOf(Long.MAX_VALUE)) >= 0 ? Long.MAX_VALUE : up.longValue();
    }

    /** The value as a floating-point number, such as a number of cores. */
    public double amount() {
        return value.doubleValue();
    }
}
