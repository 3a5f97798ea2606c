// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.spi.config.parameters;

import io.nereid.base.ServingException;
import io.nereid.spi.config.ModelConfig;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/**
 * A limit of a latency, such as {@code p99=20ms}: at least 99 % of the requests take at most 20 ms. Immutable.
 *
 * <pre>{@code
 * LatencyObjective objective = LatencyObjective.parse("p99=20ms");
 * objective.nanos(); // 20,000,000
 * }</pre>
 *
 * @param percentile the percentile that is limited, above 0 and below 100
 * @param nanos the limit in nanoseconds, above 0
 */
public record LatencyObjective(double percentile, long nanos) {
    /** The parameter of a model ({@link ModelConfig#parameters}) with the objective that its scheduler keeps; none by default. */
    public static final String PARAMETER = "slo";

    private static final Pattern FORM =
            Pattern.compile("p(\\d{1,2}(?:\\.\\d{1,3})?|999)\\s*(?:<=?|=)\\s*(\\d{1,9}(?:\\.\\d{1,6})?)\\s*(us|ms|s)");

    /** @throws IllegalArgumentException for values out of their ranges */
    public LatencyObjective {
        if (!(percentile > 0 && percentile < 100 && nanos > 0)) {
            throw new IllegalArgumentException(
                    "percentile " + percentile + " (expected: between 0 and 100), " + nanos + " ns (expected: >= 1)");
        }
    }

    /**
     * Reads a text such as {@code p99=20ms}, {@code p50=500us} or {@code p99.9=1.5s}.
     *
     * @throws IllegalArgumentException with a message that says what was expected
     */
    public static LatencyObjective parse(String text) {
        Matcher form = FORM.matcher(text.strip().toLowerCase(Locale.ROOT));
        if (!form.matches()) {
            throw wrong(text);
        }
        double percentile = form.group(1).equals("999") ? 99.9 : Double.parseDouble(form.group(1));
        double nanos = Double.parseDouble(form.group(2))
                * switch (form.group(3)) {
                    case "us" -> 1e3;
                    case "s" -> 1e9;
                    default -> 1e6;
                };
        if (!(percentile > 0 && nanos >= 1)) {
            throw wrong(text);
        }
        return new LatencyObjective(percentile, (long) Math.min(nanos, Long.MAX_VALUE / 4.0));
    }

    private static IllegalArgumentException wrong(String text) {
        return new IllegalArgumentException(
                "'" + text
                        + "' is not a latency objective (expected: a percentile, = and a time in us, ms or s, such as p99=20ms or p99.9=1.5s)");
    }

    /**
     * Returns the objective of a model; null if its configuration has none.
     *
     * @throws ServingException INVALID_ARGUMENT when the value of {@link #PARAMETER} is not an objective
     */
    public static @Nullable LatencyObjective of(ModelConfig config) {
        String text = config.parameters().get(PARAMETER);
        if (text == null) {
            return null;
        }
        try {
            return parse(text);
        } catch (IllegalArgumentException e) {
            throw ServingException.invalidArgument(
                    "parameter " + PARAMETER + " of model '" + config.name() + "': " + e.getMessage(),
                    "write an objective such as p99=20ms; without the parameter there is none");
        }
    }

    /** The percentile's name: {@code p99}, {@code p99.9}. */
    public String metric() {
        return "p"
                + (percentile == Math.rint(percentile)
                        ? Long.toString((long) percentile)
                        : Double.toString(percentile));
    }

    /** The percentile as a share of 1. */
    public double quantile() {
        return percentile / 100;
    }

    /** The limit in milliseconds. */
    public double millis() {
        return nanos / 1e6;
    }

    /** The objective in milliseconds, as it is written: {@code p99=20ms}. */
    @Override
    public String toString() {
        double millis = millis();
        return metric() + "=" + (millis == Math.rint(millis) ? Long.toString((long) millis) : Double.toString(millis))
                + "ms";
    }
}
