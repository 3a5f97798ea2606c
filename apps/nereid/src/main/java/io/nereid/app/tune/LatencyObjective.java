// Copyright the Nereid authors.
// SPDX-License-Identifier: Apache-2.0
package io.nereid.app.tune;

import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import picocli.CommandLine.ITypeConverter;
import picocli.CommandLine.TypeConversionException;

/**
 * A limit of a latency, such as {@code p99=20ms}. Immutable.
 *
 * @param percentile the percentile that is limited
 * @param limitMillis the limit in milliseconds
 */
record LatencyObjective(double percentile, double limitMillis) {
    private static final Pattern FORM =
            Pattern.compile("p(\\d{1,2}(?:\\.\\d{1,3})?|999)\\s*(?:<=?|=)\\s*(\\d{1,9}(?:\\.\\d{1,6})?)\\s*(us|ms|s)");

    /** The percentile's name: {@code p99}, {@code p99.9}. */
    String metric() {
        return "p"
                + (percentile == Math.rint(percentile)
                        ? Long.toString((long) percentile)
                        : Double.toString(percentile));
    }

    /** How many requests show the percentile: five are slower. */
    long requests() {
        return (long) Math.ceil(500 / (100 - percentile));
    }

    /** Reads the value of an option. Stateless. */
    static final class Converter implements ITypeConverter<LatencyObjective> {
        @Override
        public LatencyObjective convert(String text) {
            Matcher form = FORM.matcher(text.strip().toLowerCase(Locale.ROOT));
            if (!form.matches()) {
                throw wrong(text);
            }
            double percentile = form.group(1).equals("999") ? 99.9 : Double.parseDouble(form.group(1));
            double limit = Double.parseDouble(form.group(2))
                    * switch (form.group(3)) {
                        case "us" -> 1e-3;
                        case "s" -> 1e3;
                        default -> 1;
                    };
            if (!(percentile > 0 && limit > 0)) {
                throw wrong(text);
            }
            return new LatencyObjective(percentile, limit);
        }

        private static TypeConversionException wrong(String text) {
            return new TypeConversionException(
                    "'" + text
                            + "' is not a latency objective (expected: a percentile, = and a time in us, ms or s, such as p99=20ms or p99.9=1.5s)");
        }
    }
}
