// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.control.local.process;

import java.math.BigDecimal;
import java.util.Map;

/** Parses Kubernetes quantities: {@code 500m}, {@code 2Gi}, {@code 1e3}. Stateless. */
final class QuantityParser {
    private static final Map<String, BigDecimal> SUFFIXES = Map.ofEntries(
            Map.entry("m", new BigDecimal("0.001")),
            Map.entry("", BigDecimal.ONE),
            Map.entry("k", BigDecimal.valueOf(1_000L)),
            Map.entry("M", BigDecimal.valueOf(1_000_000L)),
            Map.entry("G", BigDecimal.valueOf(1_000_000_000L)),
            Map.entry("T", BigDecimal.valueOf(1_000_000_000_000L)),
            Map.entry("Ki", BigDecimal.valueOf(1L << 10)),
            Map.entry("Mi", BigDecimal.valueOf(1L << 20)),
            Map.entry("Gi", BigDecimal.valueOf(1L << 30)),
            Map.entry("Ti", BigDecimal.valueOf(1L << 40)));

    private QuantityParser() {}

    /** Returns the value; 0 for an empty or invalid text (admission rejects invalid quantities earlier). */
    static double number(String text) {
        int end = text.length();
        while (end > 0 && Character.isLetter(text.charAt(end - 1))) {
            end--;
        }
        BigDecimal factor = SUFFIXES.get(text.substring(end));
        try {
            return factor == null || end == 0
                    ? 0
                    : new BigDecimal(text.substring(0, end)).multiply(factor).doubleValue();
        } catch (NumberFormatException e) {
            return 0;
        }
    }

    static long bytes(String text) {
        return (long) number(text);
    }
}
